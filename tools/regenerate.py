"""Write again what is made from other files: today the two lists of locked packages in `requirements/`.

Run as `.venv/bin/python -m tools.regenerate`. The resolver lives in a throw-away environment, so that it is no
dependency of anyone who only installs. Pins that still fit are kept; `--upgrade` asks for the newest that fit.
The lists name versions and hashes and no address: where packages come from is the affair of the machine.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESOLVER = "uv==0.13.9"


def compile_arguments(lock: str, upgrade: bool) -> list[str]:
    """The resolver's arguments for one list."""
    minimum = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    arguments = ["pip", "compile", "pyproject.toml", "--quiet", "--universal", "--generate-hashes"]
    arguments += ["--no-header", "--no-annotate", "--python-version", minimum.removeprefix(">=")]
    arguments += ["--output-file", f"requirements/{lock}.lock"]
    if lock == "dev":
        arguments += ["--group", "dev", "--constraint", "requirements/run.lock"]
    return arguments + (["--upgrade"] if upgrade else [])


def main() -> int:
    """Resolve both lists, the one for running first; the exit code of the first step that failed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tools.regenerate", description=__doc__.splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that fit")
    upgrade: bool = parser.parse_args().upgrade
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        binaries = Path(folder) / "bin"
        steps = [[str(binaries / "pip"), "install", "--quiet", RESOLVER]]
        steps += [[str(binaries / "uv"), *compile_arguments(lock, upgrade)] for lock in ("run", "dev")]
        for step in steps:
            code = subprocess.run(step, cwd=ROOT, check=False).returncode
            if code:
                print(f"failed: {' '.join(step)}", file=sys.stderr)
                return code
    print("wrote requirements/run.lock and requirements/dev.lock")
    return 0


if __name__ == "__main__":
    sys.exit(main())
