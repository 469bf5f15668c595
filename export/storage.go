package export

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// modelsMount is the path of the repository in containers.
const modelsMount = "/models"

// The files of an export that has its own claim.
const (
	claimFile  = "models-claim.yaml"
	loaderFile = "loader.yaml" // manifest of the pod that fills the claim
)

// storage is the place of the repository in a cluster: a persistent volume claim or an object
// store.
type storage struct {
	URI   string // in KServe's form
	Claim string // "" for an object store
	Path  string // within the claim; "" for its root
	Own   bool   // the claim is part of the export
}

// repository returns tritonserver's argument for the repository.
func (s storage) repository() string {
	if s.Claim != "" {
		return modelsMount
	}
	return s.URI
}

var (
	storagePattern = regexp.MustCompile(`^([a-z0-9]+)://([A-Za-z0-9][A-Za-z0-9._:-]*)((?:/[A-Za-z0-9_=.-]+)*)/?$`)
	claimPattern   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// tritonSchemes lists the claims that a pod mounts, and the object stores that tritonserver reads
// itself.
func tritonSchemes() []string { return []string{"pvc", "s3", "gs", "as"} }

func checkStorage(t target, uri string) error {
	if uri == "" {
		return nil
	}
	if !t.isCluster() {
		return fmt.Errorf("--storage %q: %s serves the folder beside its files; leave it out", uri, t.name)
	}
	m := storagePattern.FindStringSubmatch(uri)
	if m == nil || !slices.Contains(t.schemes, m[1]) || strings.Contains(uri, "..") {
		return fmt.Errorf("--storage %q: %s takes SCHEME://PLACE/PATH with one of the schemes %s", uri, t.name, strings.Join(t.schemes, ", "))
	}
	if m[1] == "pvc" && !claimPattern.MatchString(m[2]) {
		return fmt.Errorf("--storage %q: %q is not the name of a persistent volume claim", uri, m[2])
	}
	return nil
}

// newStorage reads a storage that was checked. An empty one is a claim in the export.
func newStorage(uri, name string) storage {
	if uri == "" {
		claim := name + "-models"
		return storage{URI: "pvc://" + claim, Claim: claim, Own: true}
	}
	uri = strings.TrimRight(uri, "/")
	s := storage{URI: uri}
	if rest, ok := strings.CutPrefix(uri, "pvc://"); ok {
		s.Claim, s.Path, _ = strings.Cut(rest, "/")
	}
	return s
}

// addClaim adds the claim to a folder and its loader beside that folder, if the export has its own
// claim.
func (d Deployment) addClaim(w *written, folder string) {
	if !d.Storage.Own {
		return
	}
	w.addDocuments(filepath.Join(folder, claimFile), "Storage for the model repository; "+loaderFile+" fills it.", d.claim())
	w.addDocuments(loaderFile, "Copy the model repository into the claim through this pod, then delete the pod.", d.loader())
}
