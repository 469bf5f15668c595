# Read by bash before a script of Triton's QA (BASH_ENV). The script goes on behind a failure, so that
# what follows is tested too, and everything that it executes is written to QA_TRACE for checks.py.
unset BASH_ENV
exec {BASH_XTRACEFD}>"$QA_TRACE"
PS4='+${BASH_SOURCE[0]##*/}:${LINENO}:${BASH_LINENO[0]}: '

# A server that does not start ends the script there. Here its tests fail, and the next ones run.
exit() { return 0; }
set() { [ "$1" = -e ] || builtin set "$@"; }

# A server that did not start has the number 0, which kill takes for the script itself.
kill() { [ "${!#}" != 0 ] && builtin kill "$@"; }

# There is no network. What the scripts install is in the Python of peers.sh, or their tests fail.
pip() { return 0; }
pip3() { return 0; }
apt() { return 1; }
apt-get() { return 1; }
go() { return 1; }
ldconfig() { return 0; }
service() { nginx -s stop; }
