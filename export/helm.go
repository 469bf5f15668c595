package export

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"tuner/export/scaling"
)

// chartTemplates are the templates of the chart and the schema of its values. They are the same for
// every export. The differences are values, which Helm prints as YAML.
//
//go:embed all:chart
var chartTemplates embed.FS

const chartDir = "chart"

// Helm is the name of the target for Helm charts.
const Helm = "helm"

//go:embed readme/helm.md
var helmReadme string

func helmTarget() target {
	return target{
		name: Helm, about: "a chart", readme: helmReadme, mount: modelsMount, files: Deployment.helm, schemes: tritonSchemes(),
		commands: func(d Deployment) []string {
			return append(d.copyCommands(claimFile), fmt.Sprintf("helm install %s %s", d.Name, chartDir))
		},
	}
}

// helm writes a chart with the same objects as the target kubernetes. Claim and loader are outside
// the chart. So the models are there before the first server starts, and stay when the release is
// removed.
func (d Deployment) helm() written {
	var w written
	d.addClaim(&w, "")
	w.addDocuments(filepath.Join(chartDir, "Chart.yaml"), "Written by tuner; README.md beside the chart says how to install it.", chart{
		APIVersion: "v2", Name: d.Name, Description: "Triton Inference Server with tuned models: " + strings.Join(d.modelNames(), ", "),
		// for preStop.sleep
		Type: "application", Version: "0.1.0", AppVersion: imageTag(d.Image), KubeVersion: ">=1.30.0-0",
	})
	w.addDocuments(filepath.Join(chartDir, "values.yaml"), "Resources, arguments and the autoscaler's target follow from what was measured (export.json).", d.values())
	w.err = errors.Join(w.err, fs.WalkDir(chartTemplates, chartDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := chartTemplates.ReadFile(path)
		w.files = append(w.files, file{filepath.FromSlash(path), text})
		return err
	}))
	d.addMonitoring(&w, filepath.Join(chartDir, monitoringDir))
	if d.scales() {
		d.addAdapter(&w)
	}
	return w
}

func (d Deployment) modelNames() []string {
	names := make([]string, len(d.Models))
	for i, m := range d.Models {
		names[i] = m.Name
	}
	return names
}

type chart struct {
	APIVersion  string `yaml:"apiVersion"`
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Type        string `yaml:"type"`
	Version     string `yaml:"version"`
	AppVersion  string `yaml:"appVersion"`
	KubeVersion string `yaml:"kubeVersion"`
}

// chartValues is values.yaml. Values of Kubernetes have Kubernetes' names.
type chartValues struct {
	Image              string             `yaml:"image"`
	ImagePullPolicy    string             `yaml:"imagePullPolicy"`
	ImagePullSecrets   []any              `yaml:"imagePullSecrets"`
	Replicas           int                `yaml:"replicas"`
	ProgressDeadline   int                `yaml:"progressDeadlineSeconds"`
	RollingUpdate      rollout            `yaml:"rollingUpdate"`
	Arguments          []string           `yaml:"arguments"` // of tritonserver, without the repository
	Environment        map[string]string  `yaml:"environment"`
	Repository         string             `yaml:"repository"`
	Storage            chartStorage       `yaml:"storage"`
	SharedMemory       string             `yaml:"sharedMemory"` // size of /dev/shm
	Resources          resources          `yaml:"resources"`
	Probes             chartProbes        `yaml:"probes"`
	Autoscaler         scaling.Values     `yaml:"autoscaler"`
	Disruption         map[string]int     `yaml:"disruptionBudget"`
	ServiceMonitor     chartMonitor       `yaml:"serviceMonitor"`
	PrometheusRule     chartSwitch        `yaml:"prometheusRule"`
	Dashboard          chartSwitch        `yaml:"dashboard"`
	Service            map[string]string  `yaml:"service"`
	PodAnnotations     map[string]string  `yaml:"podAnnotations"`
	PodSecurityContext podSecurity        `yaml:"podSecurityContext"`
	NodeSelector       map[string]string  `yaml:"nodeSelector"`
	Tolerations        []any              `yaml:"tolerations"`
	Spread             []spreadConstraint `yaml:"topologySpreadConstraints"`
}

// chartStorage is the claim with the repository. Without a claim, the repository is in an object
// store.
type chartStorage struct {
	Claim string `yaml:"claim"`
	Path  string `yaml:"path"` // within the claim
}

type chartProbes struct {
	Ready           probeHandler `yaml:"ready"`
	StartupPeriod   int          `yaml:"startupPeriodSeconds"`
	StartupFailures int          `yaml:"startupFailureThreshold"`
}

// chartMonitor is an object of Prometheus Operator, which not every cluster supports.
type chartMonitor struct {
	Enabled  bool              `yaml:"enabled"`
	Interval string            `yaml:"interval"`
	Labels   map[string]string `yaml:"labels"` // labels by which the operator selects it
}

// chartSwitch is an object that is off by default: a PrometheusRule of Prometheus Operator, or a
// ConfigMap for the sidecar of Grafana's chart.
type chartSwitch struct {
	Enabled bool              `yaml:"enabled"`
	Labels  map[string]string `yaml:"labels"` // labels by which it is found
}

func (d Deployment) values() chartValues {
	return chartValues{
		Image: d.Image, ImagePullPolicy: "IfNotPresent", ImagePullSecrets: []any{}, Replicas: d.Replicas,
		ProgressDeadline: d.progressDeadline(), RollingUpdate: d.rollout(), Arguments: d.Arguments,
		Environment: d.environment(), Repository: d.Storage.repository(), Storage: chartStorage{d.Storage.Claim, d.Storage.Path},
		SharedMemory: fmt.Sprintf("%dMi", sharedMemory), Resources: d.resources(),
		Probes:         chartProbes{d.allReady(portHTTP), startupPeriod, d.startupFailures()},
		Autoscaler:     scaling.ValuesOf(d.Scaling, d.Prometheus, d.QueueTime),
		ServiceMonitor: chartMonitor{Interval: "15s", Labels: map[string]string{}},
		PrometheusRule: chartSwitch{Labels: map[string]string{}},
		Dashboard:      chartSwitch{Labels: dashboardLabels()},
		Service:        map[string]string{"type": "ClusterIP"},
		PodAnnotations: scrapedPods(), PodSecurityContext: tritonUser(), NodeSelector: map[string]string{}, Tolerations: []any{},
		Disruption: map[string]int{"maxUnavailable": d.disruptions()}, Spread: append([]spreadConstraint{}, d.spread(nil)...),
	}
}
