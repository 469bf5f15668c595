package export

import (
	"path/filepath"

	"tuner/export/monitoring"
)

// The files that watch a server, and their folder.
const (
	monitoringDir = "monitoring"
	alertsFile    = "alerts.yml"
	dashboardFile = "dashboard.json"
)

// monitored returns the figures from which thresholds follow.
func (d Deployment) monitored() monitoring.Server {
	s := monitoring.Server{Name: d.Name, HasGPUs: d.GPUs > 0}
	for _, m := range d.Models {
		watched := monitoring.Model{Name: m.Name, Requests: m.RequestRate(), Queue: m.Queue(), P99: m.P99(), Limit: m.P99Most()}
		for _, s := range m.Stages {
			watched.Stages = append(watched.Stages, s.Name)
		}
		s.Models = append(s.Models, watched)
	}
	return s
}

// plainMonitoring writes the files that watch a server, and nothing else.
func (d Deployment) plainMonitoring() written {
	var w written
	d.addMonitoring(&w, monitoringDir)
	return w
}

// addMonitoring writes Prometheus' alerts and Grafana's dashboard into a folder.
func (d Deployment) addMonitoring(w *written, dir string) {
	w.addDocuments(filepath.Join(dir, alertsFile), "Rules for Prometheus: rule_files. Thresholds follow from what was measured (export.json).", d.monitored().Alerts())
	w.add(filepath.Join(dir, dashboardFile), d.dashboard(w))
}

func (d Deployment) dashboard(w *written) []byte {
	text, err := d.monitored().Dashboard()
	if err != nil && w.err == nil {
		w.err = err
	}
	return text
}

// addClusterMonitoring adds the same as objects of Kubernetes. They are no manifests that are
// applied with the others, since a cluster may lack the kind or the sidecar that finds them.
func (d Deployment) addClusterMonitoring(w *written) {
	d.addMonitoring(w, monitoringDir)
	w.addDocuments(filepath.Join(monitoringDir, "prometheus-rule.yaml"), "alerts.yml for Prometheus Operator.",
		d.object("monitoring.coreos.com/v1", "PrometheusRule", d.Name, d.monitored().Alerts()))
	labels := d.selector()
	for name, value := range dashboardLabels() {
		labels[name] = value
	}
	w.addDocuments(filepath.Join(monitoringDir, "dashboard.yaml"), "dashboard.json for the sidecar of Grafana's chart.", configMap{
		"v1", "ConfigMap", metadata{Name: d.Name + "-dashboard", Labels: labels}, map[string]string{d.Name + ".json": string(d.dashboard(w))},
	})
}

// dashboardLabels are those by which the sidecar of Grafana's chart finds dashboards, by default.
func dashboardLabels() map[string]string { return map[string]string{"grafana_dashboard": "1"} }

type configMap struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   metadata          `yaml:"metadata"`
	Data       map[string]string `yaml:"data"`
}
