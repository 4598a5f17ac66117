# SPDX-License-Identifier: Apache-2.0
"""Asks zsh and fish themselves for completions of command lines, as a person does
with the tab key.

    zsh(script, folder, lines, env)  -> {line: the words that are offered}
    fish(script, folder, lines, env)

|script| is what `weir completion` printed; |folder| is the working directory.
"""
import fcntl
import os
import pathlib
import subprocess
import tempfile
import termios

# Read by an interactive zsh in the place of .zshrc. Words are offered through
# compadd alone; with -O, -A or -D it only fills an array.
ZSH = r"""
autoload -Uz compinit && compinit -u -D
source $SCRIPT
compadd() {
  local word
  local -a offered
  for word; do
    case $word in
      (-|--) break ;;
      (-*[OAD]) builtin compadd "$@"; return ;;
    esac
  done
  builtin compadd -A offered "$@"
  (($#offered)) && print -rl -- $offered >>$TOLD
  builtin compadd "$@"
}
answer() {
  _main_complete
  compstate[insert]= compstate[list]=
}
zle -C answer complete-word answer
zle-line-init() {
  local line
  for line in "${(@f)$(<$LINES_FILE)}"; do
    BUFFER=$line CURSOR=$#line
    print -r -- "> $line" >>$TOLD
    zle answer
  done
  BUFFER=exit
  zle accept-line
}
zle -N zle-line-init
"""

FISH = r"""
source $SCRIPT
while read --line line
  echo "> $line"
  complete -C "$line"
end <$LINES_FILE >$TOLD
"""


def on_terminal(args, cwd, env):
    """Runs |args| on a terminal of its own until it ends; its screen."""
    ours, theirs = os.openpty()

    def own_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    p = subprocess.Popen(args, cwd=cwd, env=env, stdin=theirs, stdout=theirs,
                         stderr=theirs, preexec_fn=own_terminal)
    os.close(theirs)
    screen = b""
    try:
        while piece := os.read(ours, 65536):
            screen += piece
    except OSError:  # the last process left the terminal
        pass
    os.close(ours)
    if p.wait(timeout=60) != 0:
        raise RuntimeError(f"{args}: {screen.decode(errors='replace')}")
    return screen


def ask(run, rc, script, lines, env):
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        told = home / "told"
        (home / "lines").write_text("".join(line + "\n" for line in lines))
        (home / "script").write_text(script)
        (home / ".zshrc").write_text(rc)
        run(home, {**env, "HOME": folder, "ZDOTDIR": folder, "TERM": "dumb",
                   "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder,
                   "SCRIPT": str(home / "script"), "TOLD": str(told),
                   "LINES_FILE": str(home / "lines")})
        answers = {}
        for text in told.read_text().splitlines():
            if text.startswith("> "):
                offered = answers.setdefault(text[2:], set())
            else:
                offered.add(text.split("\t")[0])
        return answers


def zsh(script, folder, lines, env):
    def run(_, env):
        on_terminal(["zsh", "-d", "-i"], folder, env)
    return ask(run, ZSH, script, lines, env)


def fish(script, folder, lines, env):
    def run(home, env):
        p = subprocess.run(["fish", "--no-config", home / ".zshrc"], cwd=folder,
                           env=env, capture_output=True, text=True, timeout=120)
        if p.returncode or p.stderr:
            raise RuntimeError(f"fish: {p.returncode} {p.stderr}")
    return ask(run, FISH, script, lines, env)
