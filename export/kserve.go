package export

import (
	_ "embed"
	"fmt"
	"strings"

	"tuner/capacity/autoscaler"
	"tuner/export/tuned"
	"tuner/internal/words"
)

// KServe's stock runtime for Triton.
const (
	kserveRuntime = "kserve-tritonserver"
	kservePort    = 8080 // the runtime's HTTP port for tritonserver
	// kserveMount is the folder into which KServe's initializer puts the models, wherever they come from
	kserveMount    = "/mnt/models"
	kserveCPUShare = 80 // largest target of its autoscaler, in percent of the requested cores; equal to KServe's default
)

// KServe is the name of the target for InferenceServices.
const KServe = "kserve"

//go:embed readme/kserve.md
var kserveReadme string

func kserveTarget() target {
	return target{
		name: KServe, about: "an InferenceService", readme: kserveReadme, mount: kserveMount, files: Deployment.kserve, notes: kserveNotes,
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

// scalesByCores reports whether KServe's own autoscaler changes the number of servers.
func (d Deployment) scalesByCores() bool { return d.Plan == nil && d.GPUs == 0 && d.scales() }

// cpuTarget returns the target of KServe's autoscaler, in percent of the requested cores. A
// HorizontalPodAutoscaler acts only beyond its tolerance of 10 %. So it adds a server when the
// servers use what one uses at its tuned load, which may be all that its threads ever use: more
// cores are requested than that.
func (d Deployment) cpuTarget() int {
	busy := tuned.BusyCores(d.Models)
	if busy == 0 {
		return kserveCPUShare
	}
	return max(1, min(kserveCPUShare, int(100*busy/float64(d.CPUs)/(1+autoscaler.DefaultTolerance))))
}

// cpuLimit is the use of cores above which servers are added, in percent.
func (d Deployment) cpuLimit() string {
	return words.Digits((1+autoscaler.DefaultTolerance)*float64(d.cpuTarget()), 3)
}

func kserveNotes(d Deployment, _ Options) []string {
	if !d.scalesByCores() || tuned.BusyCores(d.Models) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("The autoscaler adds servers by the use of their cores, and the campaign did not measure that. Its target is KServe's %d %%. "+
		"Set scaleTarget to 0.9 × what a server uses at its tuned load.", kserveCPUShare)}
}

// ownScraping is the annotation with which KServe sets the port for Prometheus to that of Knative's
// queue-proxy (metrics_aggregate_injector.go). Standard mode has none, and a cluster may have this
// on by default.
const ownScraping = "serving.kserve.io/enable-prometheus-scraping"

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
	annotations := scrapedPods() // KServe gives them to the pods, and its runtime for Triton has none
	annotations["serving.kserve.io/deploymentMode"], annotations[ownScraping] = "Standard", "false"
	switch {
	case d.Plan != nil:
		p.Spread = d.spread(d.predictorPods())
		annotations[autoscalerClass] = "none"
		if d.scales() {
			annotations[autoscalerClass] = "external" // KServe's own has neither the metric nor the behavior
		}
	case d.scalesByCores():
		p.ScaleMetric, p.ScaleTarget = "cpu", d.cpuTarget()
	case d.scales():
		p.MaxReplicas = d.Replicas // KServe's metric does not show a busy GPU
	}
	o := d.object("serving.kserve.io/v1beta1", "InferenceService", d.Name, predictorSpec{p})
	o.Metadata.Annotations = annotations
	return o
}
