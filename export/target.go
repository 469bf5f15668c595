package export

import (
	"fmt"
	"slices"
	"strings"
)

// target is a place that an export is for: image, resources and arguments are the Deployment's, and
// the target writes them down. Each has a file of its own, with its row, its types and its README
// template (docs/how-to/add-an-export-target.md).
type target struct {
	name  string
	about string // what it writes, in the help

	files    func(Deployment) written  // beside the repository and the README; nil: none
	commands func(Deployment) []string // that apply the export
	readme   string                    // template "target": the README's part about it

	// repository is the folder of the Triton repository in the export; "" is repositoryFolder.
	repository string
	// schemes are those of --storage, for a cluster that takes the repository from elsewhere. nil:
	// no cluster, the target serves the folder beside its files.
	schemes []string
	// isOneServer says that --replicas and --max-replicas have no effect.
	isOneServer bool
	// instanceType finds the size of a machine, for a cloud that has sizes; it gets the user's
	// choice, "" without one.
	instanceType func(d Deployment, chosen string) (string, error)
	// notes say what the files cannot; nil: nothing.
	notes func(Deployment, Options) []string
}

// targets lists the targets in the order in which the help shows them.
func targets() []target {
	return []target{tritonTarget(), kubernetesTarget(), helmTarget(), kserveTarget(), composeTarget(), azuremlTarget()}
}

// repositoryFolder is where most exports have their Triton repository.
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

// TargetsHelp says what each target writes: "triton (the repository …), kubernetes (manifests) … or
// azureml (…)".
func TargetsHelp() string { return helpOf(targets()) }

func helpOf(list []target) string {
	var texts []string
	for _, t := range list {
		texts = append(texts, fmt.Sprintf("%s (%s)", t.name, t.about))
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

// targetOf finds a target by its name.
func targetOf(name string) (target, bool) {
	list := targets()
	i := slices.IndexFunc(list, func(t target) bool { return t.name == name })
	if i < 0 {
		return target{}, false
	}
	return list[i], true
}
