"""Acquire feature values, or labels from annotators, at prediction time."""

from pboost.budget.acquisition import (
    AcquisitionResult,
    AcquisitionSession,
    acquisition_session,
    predict_with_acquisition,
)
from pboost.budget.annotators import (
    AnnotationResult,
    AnnotationSession,
    AnnotatorModel,
    annotation_session,
    fit_annotators,
    query_annotators,
)
from pboost.budget.sessions import (
    AcquiredValue,
    AcquisitionError,
    Query,
)

__all__ = [
    "AcquiredValue",
    "AcquisitionError",
    "AcquisitionResult",
    "AcquisitionSession",
    "AnnotationResult",
    "AnnotationSession",
    "AnnotatorModel",
    "Query",
    "acquisition_session",
    "annotation_session",
    "fit_annotators",
    "predict_with_acquisition",
    "query_annotators",
]
