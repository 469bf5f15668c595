package export

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// chartTemplates are the chart's templates, the same for every export: everything that differs is a value, which Helm prints as YAML itself.
//
//go:embed all:chart
var chartTemplates embed.FS

const chartDir = "chart"

// helm writes a chart of the same objects as the target kubernetes.
func (d Deployment) helm() written {
	var w written
	w.add(filepath.Join(chartDir, "Chart.yaml"), "Written by tuner; README.md beside the chart says how to install it.", chart{
		APIVersion: "v2", Name: d.Name, Description: "Triton Inference Server with tuned models: " + strings.Join(d.modelNames(), ", "),
		Type: "application", Version: "0.1.0", AppVersion: imageTag(d.Image),
	})
	w.add(filepath.Join(chartDir, "values.yaml"), "Resources, arguments and the autoscaler's target follow from what was measured (export.json).", d.values())
	w.err = errors.Join(w.err, fs.WalkDir(chartTemplates, chartDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := chartTemplates.ReadFile(path)
		w.files = append(w.files, file{filepath.FromSlash(path), text})
		return err
	}))
	if d.scales() {
		w.add("prometheus-adapter.yaml", "Values of the chart prometheus-community/prometheus-adapter: the autoscaler's metric.", adapterRules())
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
}

// chartValues is values.yaml; the parts that are Kubernetes' own have its names.
type chartValues struct {
	Image              string            `yaml:"image"`
	ImagePullPolicy    string            `yaml:"imagePullPolicy"`
	ImagePullSecrets   []any             `yaml:"imagePullSecrets"`
	Replicas           int               `yaml:"replicas"`
	Arguments          []string          `yaml:"arguments"` // of tritonserver, beside the repository
	Repository         string            `yaml:"repository"`
	Storage            chartStorage      `yaml:"storage"`
	Resources          resources         `yaml:"resources"`
	Probes             chartProbes       `yaml:"probes"`
	Autoscaler         chartAutoscaler   `yaml:"autoscaler"`
	Service            map[string]string `yaml:"service"`
	PodAnnotations     map[string]string `yaml:"podAnnotations"`
	PodSecurityContext podSecurity       `yaml:"podSecurityContext"`
	NodeSelector       map[string]string `yaml:"nodeSelector"`
	Tolerations        []any             `yaml:"tolerations"`
}

// chartStorage is the claim with the repository; no claim: the repository is in an object store.
type chartStorage struct {
	Claim      string `yaml:"claim"`
	Path       string `yaml:"path"`   // within the claim
	Create     bool   `yaml:"create"` // the claim and, until the models are copied, the loader
	AccessMode string `yaml:"accessMode"`
	Size       string `yaml:"size"`
	Loader     bool   `yaml:"loader"`
}

type chartProbes struct {
	Ready           string `yaml:"ready"`
	StartupPeriod   int    `yaml:"startupPeriodSeconds"`
	StartupFailures int    `yaml:"startupFailureThreshold"`
}

type chartAutoscaler struct {
	Enabled           bool   `yaml:"enabled"`
	MaxReplicas       int    `yaml:"maxReplicas"`
	Metric            string `yaml:"metric"`
	QueueMicroseconds string `yaml:"queueMicroseconds"`
}

func (d Deployment) values() chartValues {
	return chartValues{
		Image: d.Image, ImagePullPolicy: "IfNotPresent", ImagePullSecrets: []any{}, Replicas: d.Replicas,
		Arguments: d.Arguments, Repository: d.Storage.repository(),
		Storage: chartStorage{
			Claim: d.Storage.Claim, Path: d.Storage.Path, Create: d.Storage.Own, AccessMode: d.accessMode(), Size: d.claimSize(),
		},
		Resources:  d.resources(),
		Probes:     chartProbes{d.readyPath(), startupPeriod, d.startupFailures()},
		Autoscaler: chartAutoscaler{d.scales(), d.MaxReplicas, queueMetric, d.queueMicroseconds()},
		Service:    map[string]string{"type": "ClusterIP"},
		PodAnnotations: map[string]string{
			"prometheus.io/scrape": "true", "prometheus.io/port": fmt.Sprint(portMetrics), "prometheus.io/path": "/metrics",
		},
		PodSecurityContext: tritonUser(), NodeSelector: map[string]string{}, Tolerations: []any{},
	}
}
