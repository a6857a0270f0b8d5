"""Programs that evaluate rows by C files of models, many in one program."""

from __future__ import annotations

import os
import shutil
import subprocess

import numpy as np

#: The compilers of the tests, by name; each is skipped where it cannot build for this machine.
COMPILERS = {
    "gcc": ["gcc", "-O1"],
    "clang": ["clang", "-O0"],
    "gcc-m32": ["gcc", "-O0", "-m32", "-msse2", "-mfpmath=sse"],
    "gcc-undefined": ["gcc", "-O0", "-fsanitize=undefined", "-fno-sanitize-recover=all"],
}
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
KINDS = {"float64": np.float64, "float32": np.float32, "int16": np.int16, "int32": np.int32}
RUN = """
static void run_{prefix}(FILE *in, FILE *out, int n)
{{
    static {value} x[{d} + 1];
    {total} h[{k}];
    while (n-- > 0) {{
        double said;
        if (fread(x, sizeof *x, {d}, in) != {d}) abort();
        {scores};
        said = {predict};
        fwrite(h, sizeof *h, {k}, out);
        fwrite(&said, sizeof said, 1, out);
    }}
}}
"""
C_TYPES = {"float64": "double", "float32": "float", "int16": "int16_t", "int32": "int32_t"}


def works(compiler, folder):
    """Return whether a compiler builds programs that run here."""
    command = COMPILERS[compiler]
    if shutil.which(command[0]) is None:
        return False
    source, program = folder / f"{compiler}-try.c", folder / f"{compiler}-try"
    source.write_text("#include <stdio.h>\nint main(void) { return 0; }\n")
    built = subprocess.run([*command, str(source), "-o", str(program)], capture_output=True)
    return built.returncode == 0 and subprocess.run([str(program)]).returncode == 0


class Programs:
    """C files of models, and rows for each, in one program for each compiler."""

    def __init__(self, folder):
        self.folder, self.made, self.rows = folder, [], []

    def add(self, made, text, n_scores, rows, predicts=True):
        """Add a file, its text, number of scores, and rows (n, d); returns its place."""
        self.made.append((made, text, n_scores, rows.shape, predicts))
        self.rows.append(np.ascontiguousarray(rows, dtype=KINDS[made.dtype]))
        return len(self.made) - 1

    def source(self):
        """Return the program."""
        parts = ["#include <stdio.h>", "#include <stdlib.h>"]
        calls = []
        for made, text, k, (n, d), predicts in self.made:
            p = made.prefix
            scores = f"{p}_scores(x, h)" if k > 1 else f"h[0] = {p}_score(x)"
            parts.append(text)
            parts.append(
                RUN.format(
                    prefix=p,
                    value=C_TYPES[made.dtype],
                    total=C_TYPES[made.votes],
                    d=d,
                    k=k,
                    scores=scores,
                    predict=f"{p}_predict(x)" if predicts else "0",
                )
            )
            calls.append(f"    run_{p}(in, out, {n});")
        head = "int main(int n, char **at)\n{\n    FILE *in, *out;\n    if (n != 3) return 2;\n"
        files = '    in = fopen(at[1], "rb"), out = fopen(at[2], "wb");\n'
        end = "\n    return fclose(in) || fclose(out);\n}\n"
        return "\n".join([*parts, head + files + "\n".join(calls) + end])

    def run(self, compiler):
        """Return the scores (n, k) and predictions (n,) of each file."""
        folder = self.folder
        source, program = folder / "every.c", folder / f"every-{compiler}"
        source.write_text(self.source())
        command = [*COMPILERS[compiler], *STRICT, str(source), "-o", str(program)]
        built = subprocess.run(command, capture_output=True, text=True)
        assert built.returncode == 0, built.stderr[:4000]
        (folder / "rows").write_bytes(b"".join(rows.tobytes() for rows in self.rows))
        out = folder / f"out-{compiler}"
        ran = subprocess.run(
            [str(program), str(folder / "rows"), str(out)], capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr[:4000]
        return self._parted(out.read_bytes())

    def _parted(self, data):
        actual, at = [], 0
        for made, _, k, (n, _), _ in self.made:
            kind = np.dtype([("score", KINDS[made.votes], (k,)), ("said", np.float64)])
            part = np.frombuffer(data, kind, n, at)
            actual.append((part["score"].reshape(n, k), part["said"]))
            at += n * kind.itemsize
        assert at == len(data)
        return actual


def self_test(path, prefix, folder, compiler="gcc"):
    """Return how the program in a C file ends, and what it prints."""
    program = os.path.join(folder, f"{prefix}-self-test")
    command = [*COMPILERS[compiler], *STRICT, f"-D{prefix.upper()}_SELF_TEST", path, "-o", program]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    ran = subprocess.run([program], capture_output=True, text=True)
    return ran.returncode, ran.stdout
