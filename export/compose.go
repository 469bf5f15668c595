package export

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// prometheusImage runs beside Triton and scrapes its metrics. grafanaImage runs on request alone.
const (
	prometheusImage = "prom/prometheus:v2.55.1"
	grafanaImage    = "grafana/grafana:11.4.0"
)

// grafanaProfile is the profile of Compose without which Grafana does not start.
const grafanaProfile = "grafana"

const portPrometheus = 9090

// Compose is the name of the target for Docker Compose projects.
const Compose = "compose"

//go:embed readme/compose.md
var composeReadme string

func composeTarget() target {
	return target{
		name: Compose, about: "Triton with Prometheus", readme: composeReadme, mount: modelsMount, files: Deployment.compose, isOneServer: true,
		commands: func(Deployment) []string { return []string{"docker compose up -d"} },
	}
}

// compose writes a Docker Compose project with Triton, and with Prometheus to scrape it.
func (d Deployment) compose() written {
	var w written
	w.addDocuments("compose.yaml", "docker compose up -d; Prometheus is at http://localhost:9090.", d.project())
	w.addDocuments("prometheus.yml", "What Prometheus scrapes.", scraping())
	d.addMonitoring(&w, monitoringDir)
	w.addDocuments(filepath.Join(monitoringDir, "grafana-datasource.yml"), "Where Grafana finds Prometheus.", grafanaSource())
	w.addDocuments(filepath.Join(monitoringDir, "grafana-dashboards.yml"), "Where Grafana finds the dashboard.", grafanaDashboards())
	return w
}

type project struct {
	Name     string         `yaml:"name"`
	Services composeService `yaml:"services"`
}

type composeService struct {
	Triton     service `yaml:"triton"`
	Prometheus service `yaml:"prometheus"`
	Grafana    service `yaml:"grafana"`
}

type service struct {
	Image       string            `yaml:"image"`
	Profiles    []string          `yaml:"profiles,omitempty"` // it starts only with one of them
	Command     []string          `yaml:"command,omitempty"`
	Environment map[string]string `yaml:"environment,omitempty"`
	User        string            `yaml:"user,omitempty"`
	Ports       []string          `yaml:"ports"`
	Volumes     []string          `yaml:"volumes"`
	SharedMem   string            `yaml:"shm_size,omitempty"`
	Ulimits     map[string]int    `yaml:"ulimits,omitempty"`
	Healthcheck *healthcheck      `yaml:"healthcheck,omitempty"`
	DependsOn   []string          `yaml:"depends_on,omitempty"`
	Restart     string            `yaml:"restart"`
	StopGrace   string            `yaml:"stop_grace_period,omitempty"`
	CapDrop     []string          `yaml:"cap_drop,omitempty"`
	CapAdd      []string          `yaml:"cap_add,omitempty"`
	SecurityOpt []string          `yaml:"security_opt,omitempty"`
	Deploy      *composeResources `yaml:"deploy,omitempty"`
}

type healthcheck struct {
	Test        []string `yaml:"test"`
	Interval    string   `yaml:"interval"`
	Timeout     string   `yaml:"timeout"`
	Retries     int      `yaml:"retries"`
	StartPeriod string   `yaml:"start_period"`
}

type composeResources struct {
	Resources composeLimits `yaml:"resources"`
}

type composeLimits struct {
	Limits       map[string]string `yaml:"limits"`
	Reservations *reservations     `yaml:"reservations,omitempty"`
}

type reservations struct {
	Devices []device `yaml:"devices"`
}

type device struct {
	Driver       string   `yaml:"driver"`
	Count        int      `yaml:"count"`
	Capabilities []string `yaml:"capabilities"`
}

func (d Deployment) project() project {
	triton := service{
		Image: d.Image, Command: append([]string{"tritonserver", "--model-repository=" + modelsMount}, d.Arguments...), Environment: d.environment(), User: "1000:1000",
		Ports:     []string{published(portHTTP), published(portGRPC)},
		Volumes:   []string{"./" + d.repository() + ":" + modelsMount + ":ro"},
		SharedMem: fmt.Sprintf("%dm", sharedMemory),
		// NVIDIA's advice for pinned memory and the stacks of large graphs
		Ulimits: map[string]int{"memlock": -1, "stack": 67108864},
		Healthcheck: &healthcheck{
			Test:     append([]string{"CMD"}, d.askReady(portHTTP)...),
			Interval: "10s", Timeout: "3s", Retries: 3, StartPeriod: composeDuration(d.LoadTime),
		},
		Restart: "unless-stopped", StopGrace: composeDuration(graceSeconds * time.Second),
		CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges:true"}, Deploy: &composeResources{d.composeLimits()},
	}
	if d.bindsMemory() {
		triton.CapAdd = []string{memoryCapability}
	}
	prometheus := service{
		Image: prometheusImage, Ports: []string{"127.0.0.1:" + published(portPrometheus)},
		Volumes:   []string{"./prometheus.yml:/etc/prometheus/prometheus.yml:ro", monitoringVolume(alertsFile, "/etc/prometheus/"+alertsFile)},
		DependsOn: []string{"triton"}, Restart: "unless-stopped",
	}
	return project{d.Name, composeService{triton, prometheus, grafana()}}
}

// grafana returns Grafana with the data source and the dashboard. It reports nothing to its maker.
func grafana() service {
	return service{
		Image: grafanaImage, Profiles: []string{grafanaProfile}, Ports: []string{"127.0.0.1:" + published(3000)},
		Environment: map[string]string{
			"GF_ANALYTICS_REPORTING_ENABLED": "false", "GF_ANALYTICS_CHECK_FOR_UPDATES": "false", "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
			"GF_NEWS_NEWS_FEED_ENABLED": "false",
		},
		Volumes: []string{
			monitoringVolume("grafana-datasource.yml", "/etc/grafana/provisioning/datasources/tuner.yml"),
			monitoringVolume("grafana-dashboards.yml", "/etc/grafana/provisioning/dashboards/tuner.yml"),
			monitoringVolume(dashboardFile, grafanaFolder+"/"+dashboardFile),
		},
		DependsOn: []string{"prometheus"}, Restart: "unless-stopped",
	}
}

// grafanaFolder is where Grafana's container has the dashboard.
const grafanaFolder = "/var/lib/grafana/dashboards"

// monitoringVolume mounts a file of the folder monitoring.
func monitoringVolume(name, at string) string {
	return fmt.Sprintf("./%s/%s:%s:ro", monitoringDir, name, at)
}

// grafanaSource is a provisioning file of Grafana with Prometheus as the data source.
func grafanaSource() any {
	return map[string]any{"apiVersion": 1, "datasources": []map[string]any{{
		"name": "Prometheus", "type": "prometheus", "access": "proxy", "url": "http://prometheus:" + strconv.Itoa(portPrometheus), "isDefault": true,
	}}}
}

// grafanaDashboards is a provisioning file of Grafana that names the folder of the dashboard.
func grafanaDashboards() any {
	return map[string]any{"apiVersion": 1, "providers": []map[string]any{{
		"name": "tuner", "type": "file", "options": map[string]any{"path": grafanaFolder},
	}}}
}

// published maps a container's port to the same port of the machine.
func published(port int) string { return fmt.Sprintf("%d:%d", port, port) }

func composeDuration(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }

func (d Deployment) composeLimits() composeLimits {
	l := composeLimits{Limits: map[string]string{"cpus": strconv.Itoa(d.CPUs)}}
	if d.Memory > 0 {
		l.Limits["memory"] = fmt.Sprintf("%dM", d.Memory) // M means MiB in Compose
	}
	if d.GPUs > 0 {
		l.Reservations = &reservations{[]device{{"nvidia", d.GPUs, []string{"gpu"}}}}
	}
	return l
}

// scrapeConfig is Prometheus's configuration.
type scrapeConfig struct {
	Global        map[string]string `yaml:"global"`
	RuleFiles     []string          `yaml:"rule_files"`
	ScrapeConfigs []scrapeJob       `yaml:"scrape_configs"`
}

type scrapeJob struct {
	JobName       string           `yaml:"job_name"`
	StaticConfigs []map[string]any `yaml:"static_configs"`
}

func scraping() scrapeConfig {
	return scrapeConfig{
		Global:    map[string]string{"scrape_interval": "15s"},
		RuleFiles: []string{alertsFile},
		ScrapeConfigs: []scrapeJob{{"triton", []map[string]any{
			{"targets": []string{"triton:" + strconv.Itoa(portMetrics)}},
		}}},
	}
}
