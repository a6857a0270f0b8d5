"""Fit functions for probit models, probit model trees and ensembles of probit trees."""
