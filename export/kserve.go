package export

import (
	_ "embed"
	"strings"
)

// What KServe's stock runtime for Triton is called, and what it stands for.
const (
	kserveRuntime  = "kserve-tritonserver"
	kservePort     = 8080 // of HTTP, as the runtime starts tritonserver
	kserveCPUShare = 80   // per cent of the requested cores: KServe's own default, written down
)

// KServe is the target of an InferenceService.
const KServe = "kserve"

//go:embed readme/kserve.md
var kserveReadme string

func kserveTarget() target {
	return target{
		name: KServe, about: "an InferenceService", readme: kserveReadme, files: Deployment.kserve,
		schemes: []string{"pvc", "s3", "gs", "https", "hf"}, // of KServe's initializer
		commands: func(d Deployment) []string {
			return append(d.load(claimFile), "kubectl apply -f inferenceservice.yaml")
		},
	}
}

// kserve writes an InferenceService on KServe's own runtime for Triton, in its Standard mode (plain
// Deployments). It leaves out KServe's batcher: Triton batches already, and two batchers wait
// twice.
func (d Deployment) kserve() written {
	var w written
	d.addClaim(&w, "")
	w.add("inferenceservice.yaml", "For KServe 0.16 and newer; older ones call the mode Standard RawDeployment.", d.inferenceService())
	return w
}

type predictorSpec struct {
	Predictor predictor `yaml:"predictor"`
}

type predictor struct {
	MinReplicas int         `yaml:"minReplicas"`
	MaxReplicas int         `yaml:"maxReplicas"`
	ScaleMetric string      `yaml:"scaleMetric,omitempty"`
	ScaleTarget int         `yaml:"scaleTarget,omitempty"`
	Strategy    any         `yaml:"deploymentStrategy"`
	Model       servedModel `yaml:"model"`
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
		StorageURI: d.Storage.URI, Args: d.Arguments, Env: variables(), Resources: d.resources(),
		StartupProbe:   probeOf(d.allReady(kservePort), startupPeriod, d.startupFailures()),
		ReadinessProbe: probeOf(d.allReady(kservePort), readyPeriod, readyFailures),
	}}
	if stock, _, _ := strings.Cut(DefaultImage, ":"); d.Image == stock+":"+imageTag(d.Image) {
		p.Model.RuntimeVersion = imageTag(d.Image) // the runtime's own image in another version
	} else {
		p.Model.Image = d.Image
	}
	switch {
	case !d.scales():
	case d.GPUs == 0:
		p.ScaleMetric, p.ScaleTarget = "cpu", kserveCPUShare
	default:
		p.MaxReplicas = d.Replicas // a busy GPU does not show in what KServe scales by
	}
	o := d.object("serving.kserve.io/v1beta1", "InferenceService", d.Name, predictorSpec{p})
	o.Metadata.Annotations = map[string]string{"serving.kserve.io/deploymentMode": "Standard"}
	return o
}
