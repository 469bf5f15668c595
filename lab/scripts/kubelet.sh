#!/bin/bash
# Builds the programs of a real node into a folder: kubelet, containerd with its shim and ctr, and what holds a pod's namespaces.
# All sources come from the Go module proxy. runc and the plugins of CNI come from the system: `apt-get install runc
# containernetworking-plugins`. The first run takes several minutes, later ones no time. Usage:
#
#   lab/scripts/kubelet.sh FOLDER
set -euo pipefail

KUBERNETES=v1.36.3 # as in controlplane.sh
CONTAINERD=v2.4.2

mkdir -p "$1"
dir=$(cd "$1" && pwd)
command -v runc > /dev/null || { echo "there is no runc: apt-get install runc" >&2; exit 1; }
test -x /usr/lib/cni/bridge || { echo "there is no /usr/lib/cni/bridge: apt-get install containernetworking-plugins" >&2; exit 1; }
stamp="$dir/.$KUBERNETES-$CONTAINERD"
test -f "$stamp" && exit 0
echo "==> building kubelet and containerd (some minutes)" >&2

source "$(cd "$(dirname "$0")" && pwd)/modules.sh"
export CGO_ENABLED=0
kubernetes kubelet

module containerd
go mod edit -require "github.com/containerd/containerd/v2@$CONTAINERD"
for program in containerd containerd-shim-runc-v2 ctr; do
	GOFLAGS="${GOFLAGS:-} -tags=no_btrfs,no_devmapper,no_zfs" build "github.com/containerd/containerd/v2/cmd/$program" "$program"
done

module pause
cat > main.go <<'PROGRAM'
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
}
PROGRAM
go build -ldflags "-s -w" -o "$dir/pause" .
touch "$stamp"
