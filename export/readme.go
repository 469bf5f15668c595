package export

import (
	"bytes"
	"embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/template"

	"tuner/measure"
)

// readmes are the texts beside the files, one template for each target and what all have in common. Every value in them was checked to have
// no meaning for a shell or in Markdown.
//
//go:embed readme
var readmes embed.FS

// files are the export's files, but for the models.
func (d Deployment) files() ([]file, error) {
	var w written
	switch d.Target {
	case Kubernetes:
		w = d.kubernetes()
	case Helm:
		w = d.helm()
	case KServe:
		w = d.kserve()
	case Compose:
		w = d.compose()
	case AzureML:
		w = d.azureml()
	}
	if w.err != nil {
		return nil, w.err
	}
	readme, err := d.readme()
	if err != nil {
		return nil, err
	}
	manifest, err := d.Manifest().encode()
	if err != nil {
		return nil, err
	}
	return append(w.files, file{"README.md", readme}, file{ManifestName, manifest}), nil
}

func (d Deployment) readme() ([]byte, error) {
	t, err := template.ParseFS(readmes, "readme/common.md", "readme/"+d.Target+".md")
	if err == nil {
		var b bytes.Buffer
		if err = t.ExecuteTemplate(&b, "common.md", view{d}); err == nil {
			return b.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("cannot write README.md: %w", err)
}

// commands apply the export; they are the README's first ones.
func (d Deployment) commands() []string {
	switch d.Target {
	case Kubernetes:
		return append(d.load(), "kubectl apply -f "+manifestsDir)
	case Helm:
		return append(d.load(), fmt.Sprintf("helm install %s %s", d.Name, chartDir))
	case KServe:
		return append(d.load(), "kubectl apply -f inferenceservice.yaml")
	case Compose:
		return []string{"docker compose up -d"}
	case AzureML:
		return []string{
			"az ml model create --file model.yml", "az ml online-endpoint create --file endpoint.yml",
			"az ml online-deployment create --file deployment.yml --all-traffic",
		}
	}
	return []string{d.dockerRun()}
}

// load copies the repository into the export's own claim.
func (d Deployment) load() []string {
	if !d.Storage.Own {
		return nil
	}
	claim := "models-claim.yaml"
	if d.Target == Kubernetes {
		claim = manifestsDir + "/" + claim
	}
	return []string{
		fmt.Sprintf("kubectl apply -f %s -f loader.yaml", claim),
		fmt.Sprintf("kubectl wait --for=condition=Ready --timeout=10m pod/%s-loader", d.Name),
		fmt.Sprintf("kubectl cp %s/. %s-loader:%s", repositoryDir, d.Name, modelsMount),
		"kubectl delete -f loader.yaml",
	}
}

// dockerRun serves the repository with the resources that were measured.
func (d Deployment) dockerRun() string {
	parts := []string{"docker run --rm"}
	if d.GPUs > 0 {
		parts = append(parts, fmt.Sprintf("--gpus %d", d.GPUs))
	}
	parts = append(parts, fmt.Sprintf("--cpus %d --shm-size %dm", d.CPUs, sharedMemory))
	if d.Memory > 0 {
		parts = append(parts, fmt.Sprintf("--memory %dm", d.Memory))
	}
	for _, v := range variables() {
		parts = append(parts, fmt.Sprintf("-e %s=%s", v.Name, v.Value))
	}
	for _, port := range []int{portHTTP, portGRPC, portMetrics} {
		parts = append(parts, fmt.Sprintf("-p %d:%[1]d", port))
	}
	parts = append(parts, fmt.Sprintf(`-v "$PWD/%s:%s:ro"`, d.repository(), modelsMount), d.Image,
		"tritonserver --model-repository="+modelsMount)
	return strings.Join(append(parts, d.Arguments...), " ")
}

// view is a deployment as the templates see it.
type view struct{ Deployment }

func (v view) DockerRun() string   { return v.dockerRun() }
func (v view) Commands() []string  { return v.commands() }
func (v view) Scales() bool        { return v.scales() }
func (v view) Queue() string       { return measure.QueueTime.Format(v.QueueTime.Seconds()) }
func (v view) Endpoint() string    { return v.endpointName() }
func (v view) AccessMode() string  { return v.accessMode() }
func (v view) Repository() string  { return v.repository() }
func (v view) LoadMinutes() int    { return int(math.Ceil(v.LoadTime.Minutes())) }
func (v view) Schemes() string     { return strings.Join(schemes(v.Target), "://, ") + "://" }
func (v view) OnObjectStore() bool { return v.Storage.Claim == "" }

// Machines are those that the models were measured on, or the servers on machines that are not known; nothing where neither is.
func (v view) Machines() string {
	var names []string
	add := func(text string) {
		if name := cell(text); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, m := range v.Models {
		if m.Remote {
			add(m.Server)
		}
		add(m.Host.CPU.Model)
		for _, gpu := range m.Host.GPUs {
			if m.GPUs() > 0 {
				add(gpu.Name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// cell makes a text of the user's one line without a meaning in a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// Rows are the models with the figures that the deployment follows from.
func (v view) Rows() []string {
	var rows []string
	for _, m := range v.Models {
		memory := "unknown"
		if m.Memory > 0 {
			memory = measure.Memory.Format(m.Memory)
		}
		rows = append(rows, fmt.Sprintf("| %s | %s on %s | %d × %s | %s | %s | %s | %s |", m.Name, cell(m.Precision), cell(m.Provider), m.Instances,
			threadsText(m.Threads), m.Load, measure.Throughput.Format(m.Values[measure.Throughput].Value),
			measure.LatencyP99.Format(m.Values[measure.LatencyP99].Value), memory))
	}
	return rows
}

func threadsText(n int) string {
	switch n {
	case 0:
		return "all cores"
	case 1:
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}
