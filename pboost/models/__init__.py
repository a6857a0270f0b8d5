"""What is fitted: arrays that are checked, evaluated, explained in words, saved and loaded."""

from pboost.models._old_pickles import refuse_old_pickles

refuse_old_pickles()
