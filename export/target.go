package export

import (
	"fmt"
	"slices"
	"strings"
)

// target is a platform that an export serves. The Deployment has image, resources and arguments,
// and the target writes them. Each target has a file with its row, its types and its README
// template (docs/how-to/add-an-export-target.md).
type target struct {
	name  string
	about string // its output, for the help

	files    func(Deployment) written  // files in addition to the repository and the README; nil: none
	commands func(Deployment) []string // commands that apply the export
	readme   string                    // template "target": the target's part of the README

	// repository is the folder of the Triton repository in the export; "" means repositoryFolder.
	repository string
	// mount is the folder of the repository on the servers; "" if it differs between servers.
	mount string
	// schemes lists the values of --storage for a cluster with its own storage. nil: the target is
	// no cluster and serves the folder beside its files.
	schemes []string
	// isOneServer means that --replicas and --max-replicas have no effect.
	isOneServer bool
	// instanceType finds the machine size for a cloud that has sizes. chosen is the user's choice,
	// or "".
	instanceType func(d Deployment, chosen string) (string, error)
	// notes lists facts that the files cannot express; nil: none.
	notes func(Deployment, Options) []string
}

// targets lists the targets in the order in which the help shows them.
func targets() []target {
	return []target{tritonTarget(), kubernetesTarget(), helmTarget(), kserveTarget(), composeTarget(), azuremlTarget()}
}

// repositoryFolder is the folder of the Triton repository in most exports.
const repositoryFolder = "model_repository"

// isCluster reports whether the target is for Kubernetes.
func (t target) isCluster() bool { return t.schemes != nil }

// Targets lists the names of the targets in the order in which the help shows them.
func Targets() []string {
	var names []string
	for _, t := range targets() {
		names = append(names, t.name)
	}
	return names
}

// TargetsHelp lists what each target writes, a sentence each: "triton: the repository ….
// kubernetes: manifests. …".
func TargetsHelp() string { return helpOf(targets()) }

func helpOf(list []target) string {
	var texts []string
	for _, t := range list {
		texts = append(texts, fmt.Sprintf("%s: %s.", t.name, t.about))
	}
	return strings.Join(texts, " ")
}

// targetOf finds a target by name.
func targetOf(name string) (target, bool) {
	list := targets()
	i := slices.IndexFunc(list, func(t target) bool { return t.name == name })
	if i < 0 {
		return target{}, false
	}
	return list[i], true
}
