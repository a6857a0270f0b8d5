"""Oracles that err, by counting: fractions, all answers, all policies."""

from __future__ import annotations

from fractions import Fraction
from math import factorial, log2, prod


def chance_of(told, oracle, label):
    """Return the probability that an oracle gives answers in their order, about a row of a label.

    `oracle` has for each label the probabilities of its answers (fractions), or numbers (integers)
    counted: then the probabilities of answers are averaged over what they may be, by a Dirichlet
    density with these numbers + 1, whose integrals are factorials.
    """
    table = oracle[label]
    times = {answer: told.count(answer) for answer in table}
    if all(isinstance(p, Fraction) for p in table.values()):
        return prod((p ** times[answer] for answer, p in table.items()), start=Fraction(1))
    over = prod(factorial(c + times[answer]) for answer, c in table.items())
    under = prod(factorial(c) for c in table.values())
    before = sum(table.values()) + len(table) - 1
    return Fraction(over, under) * Fraction(factorial(before), factorial(before + len(told)))


def joint_of(ledger, annotators, prior):
    """Return for each label the probability of it and of the answers in a ledger of pairs."""
    actual = {}
    for label, start in prior.items():
        told = {name: [answer for asked, answer in ledger if asked == name] for name in annotators}
        chances = (chance_of(told[name], annotators[name], label) for name in annotators)
        actual[label] = start * prod(chances, start=Fraction(1))
    return actual


CRITERIA = {
    "entropy": lambda share: -sum(float(p) * log2(p) for p in share if p > 0),
    "gini": lambda share: 1.0 - float(sum(p * p for p in share)),
    "error": lambda share: 1.0 - float(max(share)),
    "kearns_mansour": lambda share: 2.0 * float(share[0] * share[1]) ** 0.5,
}


def share_of(joint):
    total = sum(joint.values())
    return [p / total for p in joint.values()]


def answers_of(oracle):
    return list(next(iter(oracle.values())))


def decrease(ledger, name, annotators, prior, criterion):
    """Return what an answer of an oracle is expected to take from the criterion."""
    value = CRITERIA[criterion]
    now = joint_of(ledger, annotators, prior)
    left = value(share_of(now))
    for answer in answers_of(annotators[name]):
        then = joint_of([*ledger, (name, answer)], annotators, prior)
        if sum(then.values()) > 0:
            left -= float(sum(then.values()) / sum(now.values())) * value(share_of(then))
    return left


def least_error(budget, annotators, prior, query_costs, ledger=()):
    """Return the expected error of the best of all policies within a budget."""
    joint = joint_of(ledger, annotators, prior)
    best = float(sum(joint.values()) - max(joint.values()))
    for name in annotators:
        if query_costs[name] <= budget:
            rest = [
                least_error(
                    budget - query_costs[name],
                    annotators,
                    prior,
                    query_costs,
                    (*ledger, (name, answer)),
                )
                for answer in answers_of(annotators[name])
            ]
            best = min(best, sum(rest))
    return best
