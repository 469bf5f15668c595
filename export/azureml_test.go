package export

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// azureFields are the fields of Azure's published schemas, with the required ones. They come from
// the CLI's YAML references of model, managed online endpoint and managed online deployment. A
// no-code deployment of Triton must not have code_configuration and environment, so the list omits
// these.
var azureFields = map[string]struct{ required, optional []string }{
	"model.yml": {
		[]string{"name", "path", "type"},
		[]string{"$schema", "version", "description", "tags", "properties", "flavors", "stage"},
	},
	"endpoint.yml": {
		[]string{"name"},
		[]string{"$schema", "description", "tags", "auth_mode", "identity", "public_network_access", "defaults", "mirror_traffic"},
	},
	"deployment.yml": {
		[]string{"name", "endpoint_name", "model", "instance_type", "instance_count"},
		[]string{"$schema", "description", "tags", "properties", "app_insights_enabled", "scale_settings", "request_settings", "liveness_probe",
			"readiness_probe", "egress_public_network_access", "environment_variables", "model_mount_path", "data_collector"},
	},
	// max_queue_wait_ms is missing since it is deprecated
	"deployment.yml request_settings": {nil, []string{"request_timeout_ms", "max_concurrent_requests_per_instance"}},
	// any name is allowed
	"deployment.yml environment_variables": {nil, []string{"GLIBC_TUNABLES", "ORT_DISABLE_TELEMETRY"}},
	"deployment.yml liveness_probe":        {nil, []string{"initial_delay", "period", "timeout", "success_threshold", "failure_threshold"}},
	"deployment.yml readiness_probe":       {nil, []string{"initial_delay", "period", "timeout", "success_threshold", "failure_threshold"}},
}

// TestAzureFields compares every variant's files with the schemas.
func TestAzureFields(t *testing.T) {
	t.Parallel()
	cpu := analyzed(t)
	for name, test := range map[string]struct {
		inputs  []string
		options func(*Options)
	}{
		"CPU":             {[]string{cpu}, nil},
		"GPU":             {[]string{analyzed(t, gpu()...)}, nil},
		"several models":  {[]string{cpu, analyzed(t, append(gpu(), "minilm", "resnet")...)}, nil},
		"several servers": {[]string{cpu}, func(o *Options) { o.Replicas, o.MaxReplicas = 3, 3 }},
		"all inputs": {[]string{cpu}, func(o *Options) {
			o.Name, o.InstanceType, o.Image, o.ControlMode = "encoder", "Standard_DS3_v2", "registry.example.com/triton:1", ControlExplicit
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := defaults(test.inputs...)
			if test.options != nil {
				test.options(&o)
			}
			out := filepath.Join(t.TempDir(), "deploy")
			if _, err := Write(AzureML, out, o); err != nil {
				t.Fatal(err)
			}
			checkAzure(t, azureDocuments(t, tree(t, out)))
		})
	}
}

// azureDocuments returns the objects of the files, and the objects inside them, by name.
func azureDocuments(t *testing.T, files map[string]string) map[string]map[string]any {
	t.Helper()
	documents := map[string]map[string]any{}
	for _, name := range []string{"model.yml", "endpoint.yml", "deployment.yml"} {
		var document map[string]any
		if err := yaml.Unmarshal([]byte(files[name]), &document); err != nil {
			t.Fatal(err)
		}
		documents[name] = document
		for field, value := range document {
			if inner, ok := value.(map[string]any); ok && field != "tags" {
				documents[name+" "+field] = inner
			}
		}
	}
	return documents
}

func checkAzure(t *testing.T, documents map[string]map[string]any) {
	t.Helper()
	for name, document := range documents {
		fields, known := azureFields[name]
		if !known {
			t.Errorf("%s: no such object in the schema", name)
		}
		for field := range maps.Keys(document) {
			if !slices.Contains(fields.required, field) && !slices.Contains(fields.optional, field) {
				t.Errorf("%s: %s is not in the schema", name, field)
			}
		}
		for _, field := range fields.required {
			if document[field] == nil {
				t.Errorf("%s: %s is required", name, field)
			}
		}
	}
	if documents["model.yml"]["type"] != "triton_model" || documents["deployment.yml"]["endpoint_name"] != documents["endpoint.yml"]["name"] {
		t.Errorf("not a Triton model, or not the endpoint's deployment: %v", documents)
	}
}
