package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tuner/internal/durable"
	"tuner/measure"
)

// ManifestName is the file in every export that describes it for programs
// (docs/reference/export.md).
const ManifestName = "export.json"

// ManifestFormat is the version of export.json. It increases when a field changes its meaning or
// disappears.
const ManifestFormat = 1

// Manifest is export.json: the deployment, and the reported figures. Times are seconds, sizes
// bytes.
type Manifest struct {
	Format      int             `json:"format"`
	Target      string          `json:"target"`
	Name        string          `json:"name"`
	Image       string          `json:"image"`
	Repository  string          `json:"repository"` // folder, relative to the export
	Arguments   []string        `json:"arguments"`  // of tritonserver
	CPUs        int             `json:"cpus"`
	MemoryMiB   int64           `json:"memory_mib,omitempty"`
	GPUs        int             `json:"gpus"`
	GPUResource string          `json:"gpu_resource,omitempty"`
	Models      []ManifestModel `json:"models"`
	Notes       []string        `json:"notes,omitempty"`
}

// ManifestModel is a model with its reported figures at its best load.
type ManifestModel struct {
	Name          string       `json:"name"`
	Input         string       `json:"input"` // folder of the results, as the user named it
	Configuration string       `json:"configuration"`
	Precision     string       `json:"precision"`
	Provider      string       `json:"execution_provider"`
	Runtime       string       `json:"runtime"`
	SHA256        string       `json:"sha256,omitempty"`    // of the model, from onnx.Model.Digest
	Server        string       `json:"server,omitempty"`    // the measured server, if it is not the bundled engine
	Machine       string       `json:"machine_fingerprint"` // "" if the machine is unknown
	Load          measure.Load `json:"load"`
	Throughput    Figure       `json:"throughput"`
	P99           Figure       `json:"latency_p99"`
	Cosine        *float64     `json:"cosine,omitempty"` // between its outputs and the original's
}

// Figure is a reported value with its 95 % interval.
type Figure struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
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
		m.Models = append(m.Models, ManifestModel{
			Name: model.Name, Input: model.Input, Configuration: model.Configuration, Precision: model.Precision, Provider: model.Provider,
			Runtime: model.Runtime, SHA256: model.SHA256, Server: model.Server, Machine: model.Fingerprint, Load: model.Load,
			Throughput: Figure(model.Values[measure.Throughput]), P99: Figure(model.Values[measure.LatencyP99]), Cosine: model.Cosine,
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

// ReadManifest reads an export's manifest. The error is an *InputError.
func ReadManifest(dir string) (Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, inputErrorf("no export in %q: there is no %s; 'tuner export' writes one", dir, ManifestName)
	}
	if err != nil {
		return Manifest{}, inputErrorf("cannot read %q: %w", path, durable.Cause(err))
	}
	return parseManifest(path, text)
}

// parseManifest reads export.json. path appears in messages.
func parseManifest(path string, text []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return Manifest{}, inputErrorf("%s was not written by 'tuner export': %w", path, err)
	}
	switch {
	case m.Format != ManifestFormat:
		return Manifest{}, inputErrorf("%s: format is %d; this version of tuner reads format %d", path, m.Format, ManifestFormat)
	case !filepath.IsLocal(filepath.FromSlash(m.Repository)):
		return Manifest{}, inputErrorf("%s: repository: %q leads out of the export", path, m.Repository)
	case len(m.Models) == 0:
		return Manifest{}, inputErrorf("%s: models: is empty", path)
	}
	for i, model := range m.Models {
		switch {
		case !modelName.MatchString(model.Name):
			return Manifest{}, inputErrorf("%s: models[%d].name: %q is not the name of a model", path, i, model.Name)
		case !isLoad(model.Load):
			return Manifest{}, inputErrorf("%s: models[%d].load: %s is not a load", path, i, model.Load)
		case !(model.Throughput.Value > 0):
			return Manifest{}, inputErrorf("%s: models[%d].throughput: must be above 0", path, i)
		}
	}
	return m, nil
}
