package export

import (
	_ "embed"
	"strings"
)

// KServe's stock runtime for Triton.
const (
	kserveRuntime = "kserve-tritonserver"
	kservePort    = 8080 // the runtime's HTTP port for tritonserver
	// kserveMount is the folder into which KServe's initializer puts the models, wherever they come from
	kserveMount    = "/mnt/models"
	kserveCPUShare = 80 // percent of the requested cores; equal to KServe's default
)

// KServe is the name of the target for InferenceServices.
const KServe = "kserve"

//go:embed readme/kserve.md
var kserveReadme string

func kserveTarget() target {
	return target{
		name: KServe, about: "an InferenceService", readme: kserveReadme, mount: kserveMount, files: Deployment.kserve,
		schemes: []string{"pvc", "s3", "gs", "https", "hf"}, // supported by KServe's initializer
		commands: func(d Deployment) []string {
			apply := "kubectl apply -f inferenceservice.yaml"
			if d.Plan != nil {
				apply += " -f disruption-budget.yaml"
			}
			if d.Plan != nil && d.scales() {
				apply += " -f autoscaler.yaml"
			}
			return append(d.copyCommands(claimFile), apply)
		},
	}
}

// kserve writes an InferenceService on KServe's own runtime for Triton, in its Standard mode (plain
// Deployments). It omits KServe's batcher, since Triton batches already and a request would wait in
// two batchers.
func (d Deployment) kserve() written {
	var w written
	d.addClaim(&w, "")
	w.addDocuments("inferenceservice.yaml", "For KServe 0.16 and newer; older ones call the mode Standard RawDeployment.", d.inferenceService())
	if d.Plan != nil {
		w.addDocuments("disruption-budget.yaml", d.disruptionComment(), d.disruptionBudget(d.predictorPods()))
	}
	if d.Plan != nil && d.scales() {
		w.addDocuments("autoscaler.yaml", d.autoscalerComment(), d.autoscaler(d.Name+"-predictor"))
		d.addAdapter(&w)
	}
	d.addClusterMonitoring(&w)
	return w
}

// autoscalerClass is the annotation that says who scales the servers of an InferenceService: none keeps
// minReplicas, external leaves the number to an object that KServe does not know.
const autoscalerClass = "serving.kserve.io/autoscalerClass"

// predictorPods returns the labels that KServe gives the servers.
func (d Deployment) predictorPods() map[string]string {
	return map[string]string{"serving.kserve.io/inferenceservice": d.Name, "component": "predictor"}
}

type predictorSpec struct {
	Predictor predictor `yaml:"predictor"`
}

type predictor struct {
	MinReplicas int                `yaml:"minReplicas"`
	MaxReplicas int                `yaml:"maxReplicas"`
	ScaleMetric string             `yaml:"scaleMetric,omitempty"`
	ScaleTarget int                `yaml:"scaleTarget,omitempty"`
	Strategy    any                `yaml:"deploymentStrategy"`
	Spread      []spreadConstraint `yaml:"topologySpreadConstraints,omitempty"`
	Model       servedModel        `yaml:"model"`
}

type servedModel struct {
	ModelFormat     map[string]string `yaml:"modelFormat"`
	ProtocolVersion string            `yaml:"protocolVersion"`
	Runtime         string            `yaml:"runtime"`
	RuntimeVersion  string            `yaml:"runtimeVersion,omitempty"`
	Image           string            `yaml:"image,omitempty"`
	StorageURI      string            `yaml:"storageUri"`
	Args            []string          `yaml:"args"`
	Env             []variable        `yaml:"env,omitempty"`
	StartupProbe    *probe            `yaml:"startupProbe"`
	ReadinessProbe  *probe            `yaml:"readinessProbe"`
	Resources       resources         `yaml:"resources"`
}

func (d Deployment) inferenceService() object {
	p := predictor{MinReplicas: d.Replicas, MaxReplicas: d.MaxReplicas, Strategy: d.strategy(), Model: servedModel{
		ModelFormat: map[string]string{"name": "triton", "version": "2"}, ProtocolVersion: "v2", Runtime: kserveRuntime,
		StorageURI: d.Storage.URI, Args: d.Arguments, Env: d.variables(), Resources: d.resources(),
		StartupProbe:   probeOf(d.allReady(kservePort), startupPeriod, d.startupFailures()),
		ReadinessProbe: probeOf(d.allReady(kservePort), readyPeriod, readyFailures),
	}}
	if stock, _, _ := strings.Cut(DefaultImage, ":"); d.Image == stock+":"+imageTag(d.Image) {
		p.Model.RuntimeVersion = imageTag(d.Image) // the runtime's own image with another tag
	} else {
		p.Model.Image = d.Image
	}
	annotations := map[string]string{"serving.kserve.io/deploymentMode": "Standard"}
	switch {
	case d.Plan != nil:
		p.Spread = d.spread(d.predictorPods())
		annotations[autoscalerClass] = "none"
		if d.scales() {
			annotations[autoscalerClass] = "external" // KServe's own has neither the metric nor the behavior
		}
	case !d.scales():
	case d.GPUs == 0:
		p.ScaleMetric, p.ScaleTarget = "cpu", kserveCPUShare
	default:
		p.MaxReplicas = d.Replicas // KServe's metric does not show a busy GPU
	}
	o := d.object("serving.kserve.io/v1beta1", "InferenceService", d.Name, predictorSpec{p})
	o.Metadata.Annotations = annotations
	return o
}
