"""The example of guarantees: they hold as often as was asked, and not much more often."""

from example_modules import imported


def test_guarantees_hold():
    with imported("guarantees") as example:
        for what, asked, item, error in example.coverages(1000):
            assert item >= asked - 3 * error - 1e-12, what
            if "n = 2000" in what:
                assert item <= asked + 0.05 + 3 * error
            if "ties random" in what:
                assert item <= asked + 1 / 50 + 3 * error
            if "largest" in what and "n = 100," not in what:
                assert item <= asked + 0.025
        new, cal, exact, pac_bayes, margin = (value for _, value in example.looseness())
        assert max(new, cal) < exact < pac_bayes < margin == 1
