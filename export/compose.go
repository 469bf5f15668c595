package export

import (
	_ "embed"
	"fmt"
	"strconv"
	"time"
)

// prometheusImage runs beside Triton and scrapes its metrics.
const prometheusImage = "prom/prometheus:v2.55.1"

// Compose is the name of the target for Docker Compose projects.
const Compose = "compose"

//go:embed readme/compose.md
var composeReadme string

func composeTarget() target {
	return target{
		name: Compose, about: "Triton with Prometheus", readme: composeReadme, files: Deployment.compose, isOneServer: true,
		commands: func(Deployment) []string { return []string{"docker compose up -d"} },
	}
}

// compose writes a Docker Compose project with Triton, and with Prometheus to scrape it.
func (d Deployment) compose() written {
	var w written
	w.addDocuments("compose.yaml", "docker compose up -d; Prometheus is at http://localhost:9090.", d.project())
	w.addDocuments("prometheus.yml", "What Prometheus scrapes.", scraping())
	return w
}

type project struct {
	Name     string         `yaml:"name"`
	Services composeService `yaml:"services"`
}

type composeService struct {
	Triton     service `yaml:"triton"`
	Prometheus service `yaml:"prometheus"`
}

type service struct {
	Image       string            `yaml:"image"`
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
		Image: d.Image, Command: append([]string{"tritonserver", "--model-repository=" + modelsMount}, d.Arguments...), Environment: environment(), User: "1000:1000",
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
	return project{d.Name, composeService{triton, service{
		Image: prometheusImage, Ports: []string{"127.0.0.1:" + published(9090)},
		Volumes: []string{"./prometheus.yml:/etc/prometheus/prometheus.yml:ro"}, DependsOn: []string{"triton"}, Restart: "unless-stopped",
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
	ScrapeConfigs []scrapeJob       `yaml:"scrape_configs"`
}

type scrapeJob struct {
	JobName       string           `yaml:"job_name"`
	StaticConfigs []map[string]any `yaml:"static_configs"`
}

func scraping() scrapeConfig {
	return scrapeConfig{
		Global: map[string]string{"scrape_interval": "15s"},
		ScrapeConfigs: []scrapeJob{{"triton", []map[string]any{
			{"targets": []string{"triton:" + strconv.Itoa(portMetrics)}},
		}}},
	}
}
