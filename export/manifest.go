package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tuner/export/tuned"
	"tuner/internal/durable"
	"tuner/internal/exit"
	"tuner/measure"
	"tuner/model/mix"
	"tuner/ort/addon"
	"tuner/search"
)

// ManifestName is the file in every export that describes it for programs
// (docs/reference/export.md).
const ManifestName = "export.json"

// ManifestFormat is the version of export.json. It increases when a field changes its meaning or
// disappears.
const ManifestFormat = 1

// Summary is what `tuner export --format json` prints.
type Summary struct {
	Folder string `json:"folder"` // folder of the export, as the user named it
	// files of the export, with paths relative to the folder; a model's folder stands for all its
	// files
	Files    []string `json:"files"`
	Commands []string `json:"commands"` // commands that apply the export, in order; they run in the folder
	Export   Manifest `json:"export"`   // content of export.json
}

// Manifest is export.json: the deployment, and the reported figures. Times are seconds, sizes
// bytes.
type Manifest struct {
	Format int    `json:"format"` // version of this format: 1
	Target string `json:"target"` // name of the export target
	Name   string `json:"name"`   // name of the deployment, a DNS label
	Image  string `json:"image"`  // Triton's image with its tag
	// folder of the Triton repository, relative to the export
	Repository string   `json:"repository"`
	Arguments  []string `json:"arguments"` // arguments of tritonserver, beside the repository
	CPUs       int      `json:"cpus"`      // cores of each server
	// memory of each server, in MiB; absent where it was not measured
	MemoryMiB int64 `json:"memory_mib,omitempty"`
	GPUs      int   `json:"gpus"` // number of GPUs of each server
	// Kubernetes' resource name for a GPU; absent without GPUs
	GPUResource string          `json:"gpu_resource,omitempty"`
	Models      []ManifestModel `json:"models"`          // models that each server has
	Notes       []string        `json:"notes,omitempty"` // remarks that the user should read before applying the export
}

// ManifestModel is a model with its reported figures at its best load.
type ManifestModel struct {
	Name          string `json:"name"`               // name of the model in the repository
	Input         string `json:"input"`              // output folder of the campaign, as the user named it
	Configuration string `json:"configuration"`      // name of the configuration in the report
	Precision     string `json:"precision"`          // precision of the model file, such as int8
	Provider      string `json:"execution_provider"` // execution provider, such as cpu
	// ONNX Runtime build that was measured, as flavour@version
	Runtime string `json:"runtime"`
	SHA256  string `json:"sha256,omitempty"` // SHA-256 of the model file with its external data
	// libraries with operators of the model, with paths relative to the export; absent without any
	Operators []addon.File `json:"operators,omitempty"`
	// name and version of the measured server; absent where the bundled engine was measured
	Server string `json:"server,omitempty"`
	// fingerprint of the measured machine; "" where the machine is unknown
	Machine    string       `json:"machine_fingerprint"`
	Mix        mix.Mix      `json:"mix,omitempty"` // kinds of the measured requests; absent for one shape
	Load       measure.Load `json:"load"`          // load of the figures: the configuration's best one
	Throughput Figure       `json:"throughput"`    // throughput, in inferences per second
	P99        Figure       `json:"latency_p99"`   // 99th percentile of the latency, in seconds
	// limits of the question on its figures; absent without any
	Limits []search.Constraint `json:"limits,omitempty"`
	// it was measured under load together with the other models of its input; absent if alone
	Together bool `json:"together,omitempty"`
	// values of the server's option --host-policy with which it was measured: its processors of that machine; absent
	// where models share all processors
	HostPolicies []string `json:"host_policies,omitempty"`
	// models that a pipeline calls, each with a folder of its own in the repository; absent for other models.
	// precision and execution_provider are then those of all stages, or "" where they differ
	Stages []ManifestStage `json:"stages,omitempty"`
	// mean cosine similarity of its outputs with the original's, of the output where it is lowest;
	// absent where no output has one, or nothing was compared
	Cosine *float64 `json:"cosine,omitempty"`
}

// ManifestStage is a model that a pipeline calls.
type ManifestStage struct {
	Name      string `json:"name"`               // name of the model in the repository
	Precision string `json:"precision"`          // precision of the model file, such as int8
	Provider  string `json:"execution_provider"` // execution provider, such as cpu
	SHA256    string `json:"sha256,omitempty"`   // SHA-256 of the model file with its external data
	// libraries with operators of the model, with paths relative to the export; absent without any
	Operators []addon.File `json:"operators,omitempty"`
	// mean cosine similarity of its outputs with the original's, of the output where it is lowest;
	// absent where no output has one, or nothing was compared
	Cosine *float64 `json:"cosine,omitempty"`
}

// Folders lists the models with a folder in the repository: the stages of a pipeline, as models of the same
// campaign without load and figures, and then the model itself.
func (m ManifestModel) Folders() []ManifestModel {
	var list []ManifestModel
	for _, s := range m.Stages {
		list = append(list, ManifestModel{Name: s.Name, Input: m.Input, Configuration: m.Configuration, Precision: s.Precision, Provider: s.Provider,
			Runtime: m.Runtime, SHA256: s.SHA256, Operators: s.Operators, Server: m.Server, Machine: m.Machine, Cosine: s.Cosine})
	}
	return append(list, m)
}

// Figure is a reported value with its 95 % interval.
type Figure struct {
	Value float64 `json:"value"` // the value
	Lo    float64 `json:"lo"`    // lower end of its 95 % interval
	Hi    float64 `json:"hi"`    // upper end of its 95 % interval
}

// Summary returns what `tuner export --format json` prints of an export in a folder.
func (e Export) Summary(dir string) Summary {
	return Summary{dir, e.Files, e.Next, e.Deployment.Manifest()}
}

// Manifest returns the content of export.json.
func (d Deployment) Manifest() Manifest {
	m := Manifest{
		Format: ManifestFormat, Target: d.Target, Name: d.Name, Image: d.Image, Repository: filepath.ToSlash(d.repository()), Arguments: d.Arguments,
		CPUs: d.CPUs, MemoryMiB: d.Memory, GPUs: d.GPUs, Notes: d.Notes,
	}
	if d.GPUs > 0 {
		m.GPUResource = d.GPUResource
	}
	for _, model := range d.Models {
		var stages []ManifestStage
		for _, s := range model.Stages {
			stages = append(stages, ManifestStage{s.Name, s.Precision, s.Provider, s.SHA256, d.carried(s), s.Cosine})
		}
		m.Models = append(m.Models, ManifestModel{
			Name: model.Name, Input: model.Input, Configuration: model.Configuration, Precision: model.Precision, Provider: model.Provider,
			Runtime: model.Runtime, SHA256: model.SHA256, Operators: d.carried(model), Server: model.Server, Machine: model.Fingerprint, Mix: model.Mix, Load: model.Load,
			Throughput: Figure(model.Values[measure.Throughput]), P99: Figure(model.Values[measure.LatencyP99]), Limits: model.Limits, Together: model.Together, HostPolicies: model.Policies, Stages: stages, Cosine: model.Cosine,
		})
	}
	return m
}

func (m Manifest) encode() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(m); err != nil {
		return nil, fmt.Errorf("cannot write %s: %w", ManifestName, err)
	}
	return b.Bytes(), nil
}

// ReadManifest reads an export's manifest. The exit code of the error is exit.Usage.
func ReadManifest(dir string) (Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, exit.Usagef("no export in %q: there is no %s; 'tuner export' writes one", dir, ManifestName)
	}
	if err != nil {
		return Manifest{}, exit.Usagef("cannot read %q: %w", path, durable.Cause(err))
	}
	return parseManifest(path, text)
}

// parseManifest reads export.json. path appears in messages.
func parseManifest(path string, text []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return Manifest{}, exit.Usagef("%s was not written by 'tuner export': %w", path, err)
	}
	switch {
	case m.Format != ManifestFormat:
		return Manifest{}, exit.Usagef("%s: format is %d; this version of tuner reads format %d", path, m.Format, ManifestFormat)
	case !filepath.IsLocal(filepath.FromSlash(m.Repository)):
		return Manifest{}, exit.Usagef("%s: repository: %q leads out of the export", path, m.Repository)
	case len(m.Models) == 0:
		return Manifest{}, exit.Usagef("%s: models: is empty", path)
	}
	for i, model := range m.Models {
		switch {
		case !tuned.IsName(model.Name):
			return Manifest{}, exit.Usagef("%s: models[%d].name: %q is not the name of a model", path, i, model.Name)
		case slices.ContainsFunc(model.Stages, func(s ManifestStage) bool { return !tuned.IsName(s.Name) }):
			return Manifest{}, exit.Usagef("%s: models[%d].stages: one has a name that is not that of a model", path, i)
		case !tuned.IsLoad(model.Load):
			return Manifest{}, exit.Usagef("%s: models[%d].load: %s is not a load", path, i, model.Load)
		case !(model.Throughput.Value > 0):
			return Manifest{}, exit.Usagef("%s: models[%d].throughput: must be above 0", path, i)
		}
	}
	return m, nil
}
