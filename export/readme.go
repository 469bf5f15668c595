package export

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"tuner/export/monitoring"
	"tuner/export/tuned"
	"tuner/internal/words"
	"tuner/measure"
)

// commonReadme is the part that the READMEs of all targets share. Its values were checked: none has
// a special meaning in a shell or in Markdown.
//
//go:embed readme/common.md
var commonReadme string

// files returns the export's files, without the models.
func (d Deployment) files() ([]file, error) {
	var w written
	if d.target.files != nil {
		w = d.target.files(d)
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
	t, err := template.New("README.md").Parse(commonReadme)
	if err == nil {
		_, err = t.New(d.target.name).Parse(d.target.readme)
	}
	if err == nil {
		_, err = t.New("plan").Parse(planReadme)
	}
	if err == nil {
		var b bytes.Buffer
		if err = t.Execute(&b, view{d}); err == nil {
			return b.Bytes(), nil
		}
	}
	return nil, fmt.Errorf("cannot write README.md: %w", err)
}

// copyCommands returns the commands that copy the repository into the export's own claim. claim is
// the claim's file.
func (d Deployment) copyCommands(claim string) []string {
	if !d.Storage.Own {
		return nil
	}
	return []string{
		fmt.Sprintf("kubectl apply -f %s -f %s", claim, loaderFile),
		fmt.Sprintf("kubectl wait --for=condition=Ready --timeout=10m pod/%s-loader", d.Name),
		fmt.Sprintf("kubectl cp %s/. %s-loader:%s", d.repository(), d.Name, modelsMount),
		"kubectl delete -f " + loaderFile,
	}
}

// view gives the templates access to a deployment.
type view struct{ Deployment }

func (v view) DockerRun() string   { return v.dockerRun() }
func (v view) Commands() []string  { return v.target.commands(v.Deployment) }
func (v view) Scales() bool        { return v.scales() }
func (v view) CPUTarget() int      { return v.cpuTarget() }
func (v view) CPULimit() string    { return v.cpuLimit() }
func (v view) Disruptions() int    { return v.disruptions() }
func (v view) Scaler() string      { return string(v.Scaling.Scaler) }
func (v view) Queue() string       { return measure.QueueTime.Format(v.QueueTime.Seconds()) }
func (v view) Endpoint() string    { return v.endpointName() }
func (v view) AccessMode() string  { return v.accessMode() }
func (v view) Repository() string  { return v.repository() }
func (v view) LoadMinutes() int    { return int(math.Ceil(v.LoadTime.Minutes())) }
func (v view) Schemes() string     { return strings.Join(v.target.schemes, "://, ") + "://" }
func (v view) HasOneFolder() bool  { return len(v.folders()) == 1 }
func (v view) OnObjectStore() bool { return v.Storage.Claim == "" }

// Planned says what a plan promises; "" without a plan.
func (v view) Planned() string {
	if v.Plan == nil {
		return ""
	}
	b := v.Plan.Best
	text := fmt.Sprintf("`tuner plan` chose %s of %s", b.Replicas(), v.Models[0].Configuration)
	if v.scales() {
		text += fmt.Sprintf(", with %s requests/s of a server as the target", words.Digits(b.Scaling.Target, 4))
	}
	return text + fmt.Sprintf(". In its simulation %.4g %% of the requests keep %s ms, %.4g %% on the worst day.", 100*b.Within, words.Digits(1000*v.Plan.Asked.Limit, 4), 100*b.WorstDay)
}

// Machines returns the machines on which the models were measured. It names the server instead of
// an unknown machine, and returns "" if neither is known.
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

// cell turns a user's text into one line without special characters of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// Rows returns the models, with the figures behind the deployment.
func (v view) Rows() []string {
	var rows []string
	for _, group := range tuned.Groups(v.Models) {
		for i, m := range group {
			memory := "unknown"
			switch {
			case i > 0: // the server's stands with the first
				memory = "in the above"
			case m.Memory > 0:
				memory = measure.Memory.Format(m.Memory)
			}
			setup, instances := setupCells(m)
			if len(m.Stages) > 0 {
				setup, instances = "pipeline of the following", ""
			}
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |", m.Name, setup, instances, m.Load,
				measure.Throughput.Format(m.Values[measure.Throughput].Value), measure.LatencyP99.Format(m.Values[measure.LatencyP99].Value), memory))
			for _, s := range m.Stages {
				setup, instances := setupCells(s)
				rows = append(rows, fmt.Sprintf("| %s | %s | %s | from %s | | | in the above |", s.Name, setup, instances, m.Name))
			}
		}
	}
	return rows
}

// setupCells are the cells of a model's row about its file and its instances.
func setupCells(m tuned.Model) (setup, instances string) {
	if m.IsForeign() {
		return "backend " + cell(m.Config.GetBackend()), strconv.Itoa(m.Instances)
	}
	return fmt.Sprintf("%s on %s", cell(m.Precision), cell(m.Provider)), fmt.Sprintf("%d × %s", m.Instances, threadsText(m.Threads))
}

// AlertRows returns the thresholds of each model's alerts.
func (v view) AlertRows() []string {
	var rows []string
	for _, m := range v.monitored().Models {
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | 1 %% |", m.Name, words.Digits(monitoring.LoadShare*m.Requests, 4),
			measure.QueueTime.Format(m.QueueLimit().Seconds()), measure.LatencyP99.Format(m.P99Limit().Seconds())))
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
