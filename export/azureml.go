package export

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tuner/export/azuresize"
)

// azureSchemas is the address of Azure's schemas. Editors check the files with them.
const azureSchemas = "https://azuremlschemas.azureedge.net/latest/"

// Azure's limits on the time of a scoring request. The timeout is azureTimeoutP99 times p99, since
// a request may wait in a queue that a burst has filled.
const (
	azureLeastTimeout = 5 * time.Second // Azure's default
	azureMostTimeout  = 180 * time.Second
	azureTimeoutP99   = 20
)

const azureDeploymentName = "blue"

// AzureML is the name of the target for Azure ML online endpoints.
const AzureML = "azureml"

//go:embed readme/azureml.md
var azuremlReadme string

func azuremlTarget() target {
	return target{
		name: AzureML, about: "an online endpoint", readme: azuremlReadme, files: Deployment.azureml,
		repository:   filepath.Join("models", "triton"), // the place in which Azure's no-code deployment looks
		instanceType: instanceType, notes: azureNotes,
		commands: func(Deployment) []string {
			return []string{
				"az ml model create --file model.yml", "az ml online-endpoint create --file endpoint.yml",
				"az ml online-deployment create --file deployment.yml --all-traffic",
			}
		},
	}
}

// azureml writes a model, an endpoint and a deployment for the Azure ML CLI (version 2), without
// user code. Azure supplies Triton for a deployment without code_configuration and environment.
func (d Deployment) azureml() written {
	var w written
	tags := map[string]string{"written_by": "tuner"}
	w.addDocuments("model.yml", "az ml model create --file model.yml", azureModel{
		azureSchemas + "model.schema.json", d.Name, "triton_model", "./models", "Tuned by tuner: " + strings.Join(d.modelNames(), ", "), tags,
	})
	w.addDocuments("endpoint.yml", "az ml online-endpoint create --file endpoint.yml; its name must be unique in the region.", azureEndpoint{
		azureSchemas + "managedOnlineEndpoint.schema.json", d.endpointName(), "key", tags,
	})
	w.addDocuments("deployment.yml", "az ml online-deployment create --file deployment.yml --all-traffic", azureDeployment{
		Schema: azureSchemas + "managedOnlineDeployment.schema.json", Name: azureDeploymentName, EndpointName: d.endpointName(),
		Model: "azureml:" + d.Name + "@latest", InstanceType: d.InstanceType, InstanceCount: d.Replicas,
		Environment:     d.environment(),
		RequestSettings: azureRequests{d.azureTimeout(), max(1, d.Concurrency)},
		LivenessProbe:   d.azureProbe(), ReadinessProbe: d.azureProbe(), Tags: tags,
	})
	return w
}

type azureModel struct {
	Schema      string            `yaml:"$schema"`
	Name        string            `yaml:"name"`
	Type        string            `yaml:"type"`
	Path        string            `yaml:"path"` // the folder that contains the folder triton
	Description string            `yaml:"description"`
	Tags        map[string]string `yaml:"tags"`
}

type azureEndpoint struct {
	Schema   string            `yaml:"$schema"`
	Name     string            `yaml:"name"`
	AuthMode string            `yaml:"auth_mode"`
	Tags     map[string]string `yaml:"tags"`
}

type azureDeployment struct {
	Schema          string            `yaml:"$schema"`
	Name            string            `yaml:"name"`
	EndpointName    string            `yaml:"endpoint_name"`
	Model           string            `yaml:"model"`
	InstanceType    string            `yaml:"instance_type"`
	InstanceCount   int               `yaml:"instance_count"`
	Environment     map[string]string `yaml:"environment_variables"`
	RequestSettings azureRequests     `yaml:"request_settings"`
	LivenessProbe   azureProbe        `yaml:"liveness_probe"`
	ReadinessProbe  azureProbe        `yaml:"readiness_probe"`
	Tags            map[string]string `yaml:"tags"`
}

// azureRequests sets the limits on requests. By default Azure sends one request at a time to a
// server, so Triton could not batch.
type azureRequests struct {
	TimeoutMS     int64 `yaml:"request_timeout_ms"`
	MaxConcurrent int   `yaml:"max_concurrent_requests_per_instance"`
}

type azureProbe struct {
	InitialDelay     int `yaml:"initial_delay"` // seconds, like all times here
	Period           int `yaml:"period"`
	Timeout          int `yaml:"timeout"`
	SuccessThreshold int `yaml:"success_threshold"`
	FailureThreshold int `yaml:"failure_threshold"`
}

func (d Deployment) azureProbe() azureProbe {
	const period = 10
	return azureProbe{10, period, 2, 1, periods(d.LoadTime, period)}
}

func (d Deployment) azureTimeout() int64 {
	return min(max(azureTimeoutP99*d.P99, azureLeastTimeout), azureMostTimeout).Milliseconds()
}

// endpointName returns a name of three to 32 characters.
func (d Deployment) endpointName() string {
	name := strings.TrimRight(d.Name[:min(len(d.Name), 32)], "-")
	if len(name) < 3 {
		name += "-endpoint"
	}
	return name
}

// azureNotes describe how a server on Azure differs from the measured one.
func azureNotes(d Deployment, o Options) []string {
	var list []string
	if date := azuresize.Retirement(d.InstanceType); date != "" {
		list = append(list, fmt.Sprintf("Azure's retirement date of %s is %s: choose another with --instance-type, such as Standard_NC4as_T4_v3 or Standard_D4as_v4.",
			d.InstanceType, date))
	}
	if o.MaxReplicas != DefaultMaxReplicas {
		list = append(list, "No autoscaler is written for Azure: --max-replicas has no effect there.")
	}
	if o.Image != DefaultImage {
		list = append(list, fmt.Sprintf("Azure brings its own Triton for models of the type triton_model: --image %s has no effect there.", o.Image))
	}
	if o.ControlMode != ControlNone || len(o.HostPolicies) > 0 {
		list = append(list, "Azure starts Triton itself: --model-control-mode and --host-policy have no effect there.")
	}
	return list
}
