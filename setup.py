"""The one part of the build that pyproject.toml cannot say without a warning: the C kernel.

It is optional: where it does not compile, the package is installed without it and reads run files in Python. On Windows,
which lacks calls that it is used with, and under CRANFIELD_WITHOUT_KERNEL=1 it is not built: the wheel is that of every platform.
"""

import os
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNEL = "src/cranfield/ranking/kernel"
OLDEST_PYTHON = "0x030B0000"
IS_BUILT = sys.platform != "win32" and os.environ.get("CRANFIELD_WITHOUT_KERNEL") != "1"
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")  # the stable interface is not there without the lock


class BuildKernel(build_ext):
    """Compiles with what the compiler understands."""

    def build_extensions(self) -> None:
        """Add the options of compilers that speak as gcc does, which are all that the kernel is written for."""
        if self.compiler.compiler_type == "unix":
            for extension in self.extensions:
                extension.extra_compile_args = ["-std=c11", "-O3", "-g0", "-fvisibility=hidden"]
        super().build_extensions()


setup(
    cmdclass={"build_ext": BuildKernel},
    ext_modules=[
        Extension(
            "cranfield.ranking._kernel",
            sorted(str(path) for path in Path(KERNEL).glob("*.c")),
            depends=sorted(str(path) for path in Path(KERNEL).glob("*.h")),
            define_macros=[("Py_LIMITED_API", OLDEST_PYTHON)] if STABLE else [],
            py_limited_api=STABLE,
            optional=True,
        )
    ]
    if IS_BUILT
    else [],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
