# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries of CUDA on a machine."""
import glob
import os
import re
import site
import subprocess
import sys
import tempfile

LIBRARIES = ("libcudart.so.13", "libcublasLt.so.13")


def of_loader():
    """Folders where the system's loader looks."""
    folders = [d for d in os.environ.get("LD_LIBRARY_PATH", "").split(":") if d]
    try:
        cache = subprocess.run(["ldconfig", "-p"], capture_output=True,
                               text=True, check=False).stdout
    except OSError:
        cache = ""
    for name in LIBRARIES:
        folders += [os.path.dirname(m) for m in re.findall(
            re.escape(name) + r" .*=> (\S+)", cache)]
    return folders


def of_toolkit():
    roots = ["/usr/local/cuda"] + sorted(glob.glob("/usr/local/cuda-13*"),
                                         reverse=True)
    return [d for r in roots for d in
            [r + "/lib64", *glob.glob(r + "/targets/*/lib")]]


def of_python():
    """The packages of NVIDIA that PyTorch brings."""
    places = list(sys.path)
    try:
        places += site.getsitepackages() + [site.getusersitepackages()]
    except AttributeError:
        pass  # some virtual environments lack them
    return [os.path.join(p, "nvidia", d, "lib") for p in places
            for d in ("cu13", "cuda_runtime", "cublas")]


def of_option(folder):
    return [folder] + [os.path.join(folder, d) for d in ("lib64", "lib")]


def first_with(folders, names):
    """The first folder that has all |names|; None: there is none."""
    for folder in folders:
        if all(os.path.exists(os.path.join(folder, n)) for n in names):
            return os.path.realpath(folder)
    return None


def link_folder(found):
    """A new folder of links, for libraries that lie apart."""
    folder = tempfile.mkdtemp(prefix="gpu-check-cuda-")
    for source in found.values():
        for path in glob.glob(os.path.join(source, "lib*.so*")):
            link = os.path.join(folder, os.path.basename(path))
            if not os.path.lexists(link):
                os.symlink(path, link)
    return folder


def find_cuda(option):
    """(folder, text): a folder with all LIBRARIES, and where they are from;
    folder None: the text says what is missing."""
    if option:
        sources = [("--cuda", of_option(option))]
    else:
        sources = [("the loader's path", of_loader()),
                   ("the toolkit", of_toolkit()),
                   ("packages of python3", of_python())]
    for how, folders in sources:
        folder = first_with(folders, LIBRARIES)
        if folder:
            return folder, f"{folder}, by {how}"
    everywhere = [f for _, folders in sources for f in folders]
    found = {n: first_with(everywhere, [n]) for n in LIBRARIES}
    missing = [n for n in LIBRARIES if not found[n]]
    if missing:
        tried = dict.fromkeys(f for f in everywhere if os.path.isdir(f))
        return None, (f"no {' and no '.join(missing)} in "
                      f"{', '.join(tried) or 'any folder'}; name the folder "
                      "with --cuda")
    return link_folder(found), ", ".join(f"{found[n]}/{n}" for n in LIBRARIES)
