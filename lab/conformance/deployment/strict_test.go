package deployment

import (
	"bytes"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// decode reads an object as strictly as the API server with fieldValidation=Strict: unknown and
// duplicate fields are errors.
func decode(text []byte) (runtime.Object, error) {
	object, _, err := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode(text, nil, nil)
	return object, err
}

// TestStrictFields decodes every manifest into Kubernetes' own types.
func TestStrictFields(t *testing.T) {
	for name, args := range variants {
		t.Run(name, func(t *testing.T) {
			dir := export(t, "kubernetes", args...)
			files, err := filepath.Glob(filepath.Join(dir, "manifests", "*.yaml"))
			loader, _ := filepath.Glob(filepath.Join(dir, "loader.yaml")) // absent without its own claim
			if err != nil || len(files) < 3 {
				t.Fatalf("only the manifests %v: %v", files, err)
			}
			for _, file := range append(files, loader...) {
				if bytes.Contains(read(t, file), []byte("kind: ScaledObject\n")) {
					continue // KEDA's: the API server checks it
				}
				if _, err := decode(read(t, file)); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		})
	}
	text := read(t, filepath.Join(export(t, "kubernetes"), "manifests", "deployment.yaml"))
	if _, err := decode(bytes.Replace(text, []byte("failureThreshold"), []byte("failureTreshold"), 1)); err == nil {
		t.Error("a misspelt field is accepted")
	}
}
