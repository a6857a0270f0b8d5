"""Evaluation of models: conversion of rows, walks through nodes, and early exits."""
