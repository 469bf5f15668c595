#!/bin/bash
# Builds the validators of deployment files into a folder: etcd, kube-apiserver, helm and promtool. Also
# fetches the CRDs of KServe and KEDA. All sources come from the Go module proxy, so no containers or packages are
# needed. The first run takes several minutes, later ones no time. Usage:
#
#   lab/scripts/controlplane.sh FOLDER [cluster]
#
# With "cluster" it also builds kube-controller-manager, kube-scheduler and kubectl, for tests of fleets.
set -euo pipefail

KUBERNETES=v1.36.3
ETCD=v3.6.8
HELM=v3.22.0
KSERVE=v0.16.0
KEDA=v2.18.0
PROMETHEUS=v0.310.0 # as in conformance/deployment/go.mod

mkdir -p "$1"
dir=$(cd "$1" && pwd)
keda="$dir/crds/scaledobjects-$KEDA.yaml"
if ! test -f "$keda"; then
	folder=$(cd / && go mod download -json "github.com/kedacore/keda/v2@$KEDA" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	rm -f "$dir"/crds/scaledobjects-*.yaml
	install -D -m 644 "$folder/config/crd/bases/keda.sh_scaledobjects.yaml" "$keda"
fi
stamp="$dir/.$KUBERNETES-$ETCD-$HELM-$KSERVE-$PROMETHEUS"
test -f "$stamp" && { test "${2:-}" != cluster || test -f "$stamp-cluster"; } && exit 0
echo "==> building etcd, kube-apiserver and others (some minutes)" >&2

source "$(cd "$(dirname "$0")" && pwd)/modules.sh"
export CGO_ENABLED=0

if ! test -f "$stamp"; then
	kubernetes kube-apiserver

	module etcd
	go mod edit -require "go.etcd.io/etcd/server/v3@$ETCD"
	build go.etcd.io/etcd/server/v3 etcd

	module helm
	go mod edit -require "helm.sh/helm/v3@$HELM"
	build helm.sh/helm/v3/cmd/helm helm

	module prometheus
	go mod edit -require "github.com/prometheus/prometheus@$PROMETHEUS"
	build github.com/prometheus/prometheus/cmd/promtool promtool

	module kserve
	folder=$(go mod download -json "github.com/kserve/kserve@$KSERVE" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	install -D -m 644 "$folder/config/crd/full/serving.kserve.io_inferenceservices.yaml" "$dir/crds/inferenceservices.yaml"
	touch "$stamp"
fi

if test "${2:-}" = cluster && ! test -f "$stamp-cluster"; then
	kubernetes kube-controller-manager kube-scheduler kubectl
	touch "$stamp-cluster"
fi
