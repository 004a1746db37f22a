"""A prefix with nonic in it, which is not where it was made for."""
import glob
import os
import subprocess

from checks import ROOT, check


def install(build, work):
    """Installs into a folder by `meson install`; then moves the prefix to a place that no file names."""
    staged = os.path.join(work, 'staged')
    done = subprocess.run(['meson', 'install', '-C', os.path.join(ROOT, build), '--no-rebuild', '--destdir', staged],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    nonic = glob.glob(f'{staged}/**/bin/nonic', recursive=True)
    check('meson install --destdir', done.returncode == 0 and len(nonic) == 1, done)
    os.rename(os.path.dirname(os.path.dirname(nonic[0])), f'{work}/moved')
    return f'{work}/moved'


def pkg_config(prefix, word):
    """Its answer about nonic-hdl, as one word of a shell."""
    done = subprocess.run(['pkg-config', word, 'nonic-hdl'], capture_output=True, text=True,
                          env={**os.environ, 'PKG_CONFIG_PATH': f'{prefix}/share/pkgconfig'})
    check(f'pkg-config {word}', done.returncode == 0 and done.stdout.strip(), done)
    return done.stdout.strip()
