# Functions that build programs of Go modules, for controlplane.sh and kubelet.sh. They need dir, the folder of the
# programs, and KUBERNETES, its version.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# module NAME: makes an empty Go module. Requirements and replacements are added later.
module() {
	mkdir -p "$work/$1" && cd "$work/$1" && go mod init "$1" 2>/dev/null
}

# build PACKAGE PROGRAM: builds a program of the current module.
build() {
	printf '//go:build tools\n\npackage tools\n\nimport _ "%s"\n' "$1" > tools.go
	go mod tidy 2>/dev/null
	go build -ldflags "-s -w ${3:-}" -o "$dir/$2" "$1"
}

# kubernetes PROGRAM…: builds programs of Kubernetes. Only its own repository replaces its staging modules.
kubernetes() {
	module kubernetes
	source=$(go mod download -json "k8s.io/kubernetes@$KUBERNETES" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	go mod edit -require "k8s.io/kubernetes@$KUBERNETES"
	for staged in $(sed -n 's#^\t\(k8s.io/[^ ]*\) => ./staging/.*#\1#p' "$source"); do
		go mod edit -replace "$staged=$staged@v0${KUBERNETES#v1}"
	done
	version="-X k8s.io/component-base/version.gitVersion=$KUBERNETES -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
	for program in "$@"; do
		build "k8s.io/kubernetes/cmd/$program" "$program" "$version"
	done
	rm -rf "$work/kubernetes"
}
