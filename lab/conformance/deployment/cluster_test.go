package deployment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// cluster is a real API server with the resource definitions of KServe and KEDA.
type cluster struct {
	address string
	client  *http.Client
}

// newCluster starts etcd and the API server that lab/scripts/controlplane.sh has built.
func newCluster(t *testing.T) cluster {
	t.Helper()
	dir := environment(t, "TUNER_CONTROLPLANE")
	e := &envtest.Environment{
		BinaryAssetsDirectory: dir, CRDDirectoryPaths: []string{filepath.Join(dir, "crds")}, ErrorIfCRDPathMissing: true,
	}
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return cluster{strings.TrimSuffix(config.Host, "/"), client}
}

// resources are the paths of the kinds that exports have.
var resources = map[string]string{
	"apps/v1 Deployment":                         "/apis/apps/v1/namespaces/default/deployments",
	"v1 Service":                                 "/api/v1/namespaces/default/services",
	"v1 Pod":                                     "/api/v1/namespaces/default/pods",
	"v1 PersistentVolumeClaim":                   "/api/v1/namespaces/default/persistentvolumeclaims",
	"policy/v1 PodDisruptionBudget":              "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
	"autoscaling/v2 HorizontalPodAutoscaler":     "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
	"keda.sh/v1alpha1 ScaledObject":              "/apis/keda.sh/v1alpha1/namespaces/default/scaledobjects",
	"serving.kserve.io/v1beta1 InferenceService": "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices",
}

// fleetResources are those of a fleet.
var fleetResources = map[string]string{
	"batch/v1 Job":                             "/apis/batch/v1/namespaces/default/jobs",
	"v1 ConfigMap":                             "/api/v1/namespaces/default/configmaps",
	"v1 ServiceAccount":                        "/api/v1/namespaces/default/serviceaccounts",
	"rbac.authorization.k8s.io/v1 Role":        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
	"rbac.authorization.k8s.io/v1 RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}

// restrict lets a namespace enforce Pod Security "restricted".
func (c cluster) restrict(t *testing.T, namespace string) {
	t.Helper()
	body := `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, c.address+"/api/v1/namespaces/"+namespace, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v: %s", err, answer)
	}
}

// podOf returns the pod that a job makes; nil for other objects.
func podOf(t *testing.T, object []byte) []byte {
	t.Helper()
	var job struct {
		Kind string `yaml:"kind"`
		Spec struct {
			Template map[string]any `yaml:"template"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal(object, &job); err != nil {
		t.Fatal(err)
	}
	if job.Kind != "Job" {
		return nil
	}
	pod := job.Spec.Template
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	metadata := pod["metadata"].(map[string]any)
	metadata["name"] = "pod"
	spec := pod["spec"].(map[string]any)
	delete(spec, "priorityClassName") // a class that this cluster does not have
	delete(spec, "serviceAccountName")
	text, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// create asks the API server to create an object, with strict validation and without storing it.
// The error is the server's own.
func (c cluster) create(t *testing.T, object []byte) error {
	t.Helper()
	var head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	if err := yaml.Unmarshal(object, &head); err != nil {
		return err
	}
	path, ok := resources[head.APIVersion+" "+head.Kind]
	if !ok {
		path, ok = fleetResources[head.APIVersion+" "+head.Kind]
	}
	if !ok {
		return fmt.Errorf("%s %s is not a kind that exports have", head.APIVersion, head.Kind)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.address+path+"?dryRun=All&fieldValidation=Strict", bytes.NewReader(object))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/yaml")
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s %s: %s: %s", head.APIVersion, head.Kind, response.Status, answer)
	}
	return nil
}

// refuses fails the test unless the API server refuses an object because of the given fault.
func (c cluster) refuses(t *testing.T, object []byte, fault string) {
	t.Helper()
	if err := c.create(t, object); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(strings.TrimPrefix(fault, "name: "))) {
		t.Errorf("with %q: %v", fault, err)
	}
}

// documents splits a YAML file.
func documents(t *testing.T, text []byte) [][]byte {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var list [][]byte
	for {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if value == nil {
			continue
		}
		document, err := yaml.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, document)
	}
}

// TestManifests has the API server accept every object of the targets kubernetes, kserve and helm.
func TestManifests(t *testing.T) {
	c := newCluster(t)
	t.Run("what is wrong is refused", func(t *testing.T) {
		dir := export(t, "kubernetes")
		text := read(t, filepath.Join(dir, "manifests", "deployment.yaml"))
		for _, wrong := range [][2]string{{"failureThreshold", "failureTreshold"}, {"name: http\n", "name: a-name-that-is-too-long\n"}} {
			c.refuses(t, bytes.Replace(text, []byte(wrong[0]), []byte(wrong[1]), 1), wrong[1])
		}
		service := read(t, filepath.Join(export(t, "kserve"), "inferenceservice.yaml"))
		c.refuses(t, bytes.Replace(service, []byte("storageUri"), []byte("storageUrl"), 1), "storageUrl")
	})
	for name, args := range variants {
		for target, pattern := range map[string]string{"kubernetes": "manifests/*.yaml", "kserve": "[adi]*.yaml"} { // all but the claim and values
			t.Run(target+", "+name, func(t *testing.T) {
				dir := export(t, target, args...)
				files, err := filepath.Glob(filepath.Join(dir, pattern))
				loaders, _ := filepath.Glob(filepath.Join(dir, "loader.yaml")) // absent without its own claim
				claims, _ := filepath.Glob(filepath.Join(dir, "models-claim.yaml"))
				if err != nil || len(files) == 0 {
					t.Fatalf("no files %s: %v", pattern, err)
				}
				for _, file := range append(append(files, loaders...), claims...) {
					for _, document := range documents(t, read(t, file)) {
						if err := c.create(t, document); err != nil {
							t.Errorf("%s: %v\n%s", file, err, document)
						}
					}
				}
			})
		}
		t.Run("helm, "+name, func(t *testing.T) {
			for _, document := range documents(t, rendered(t, export(t, "helm", args...))) {
				if err := c.create(t, document); err != nil {
					t.Errorf("%v\n%s", err, document)
				}
			}
		})
	}
}

// helm returns the program that lab/scripts/controlplane.sh has built.
func helm(t *testing.T) string {
	t.Helper()
	return filepath.Join(environment(t, "TUNER_CONTROLPLANE"), "helm")
}

// rendered returns the chart of an export, rendered by helm under the export's name, for the oldest
// Kubernetes that the chart names.
func rendered(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	var chart struct {
		Name string `yaml:"name"`
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(dir, "chart", "Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	if out := run(t, dir, helm(t), "lint", "--strict", "chart"); !strings.Contains(string(out), "0 chart(s) failed") {
		t.Errorf("helm lint:\n%s", out)
	}
	return run(t, dir, helm(t), append([]string{"template", chart.Name, "chart", "--kube-version", "1.30"}, args...)...)
}
