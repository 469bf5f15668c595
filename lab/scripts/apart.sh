#!/bin/bash
# Runs a command with processes, mounts and a network of its own. A kubelet and containerd start, mount and set much that outlives
# them. Here all of it ends with the command, also if that fails or is killed. It needs root. Usage:
#
#   lab/scripts/apart.sh COMMAND…
#
# The command finds as TMPDIR a folder that is removed afterwards. TUNER_GROUP is the path of its group in each hierarchy of control
# groups. Its network is a loopback device alone.
set -euo pipefail

if test "${1:-}" = --inside; then
	shift
	# What a kubelet sets here holds for the whole machine. It sets copies.
	for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
		copy="$TMPDIR/settings/$name"
		mkdir -p "$(dirname "$copy")"
		cat "/proc/sys/$name" > "$copy"
		mount --bind "$copy" "/proc/sys/$name"
	done
	for folder in /run /var/lib /var/log; do # sockets, caches and links, whose places have no setting
		mount -t tmpfs tmpfs "$folder"
	done
	ip link set lo up
	"$@"
	exit # as the first process this shell collects those that lose their parents, so it is not replaced by the command
fi

test "$(id -u)" = 0 || { echo "namespaces and control groups need root" >&2; exit 1; }
group="tuner-apart-$$"
hierarchies=$(awk '$3 == "cgroup" || $3 == "cgroup2" {print $2}' /proc/mounts)
TMPDIR=$(mktemp -d)
export TMPDIR TUNER_GROUP="/$group"
chmod 755 "$TMPDIR" # the users of containers pass here

remove() {
	for at in $hierarchies; do
		test ! -d "$at/$group" || find "$at/$group" -depth -type d -exec rmdir {} \;
	done
	rm -rf --one-file-system "$TMPDIR"
}
trap remove EXIT
for at in $hierarchies; do
	mkdir "$at/$group"
done

# The kernel kills all processes of a namespace with its first one, and removes mounts and devices with the last.
setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child --mount-proc "$0" --inside "$@" &
child=$!
trap 'pkill -KILL -P "$child"' INT TERM
code=0
wait "$child" || code=$?
while kill -0 "$child" 2> /dev/null; do # a signal has interrupted the wait
	wait "$child" || true
done
exit "$code"
