package verify

import (
	"fmt"
	"path/filepath"
	"slices"

	"tuner/export"
	"tuner/measure/arrivals"
	"tuner/model/isolation"
	"tuner/model/modelconfig"
	"tuner/model/modelrepo"
	"tuner/model/onnx"
	"tuner/model/onnx/inputs"
	"tuner/profile"
	"tuner/runner"
	"tuner/runner/payload"
	"tuner/spec"
)

// subject is an exported model, with requests for it.
type subject struct {
	reported export.ManifestModel
	config   *modelconfig.Config // in the repository
	file     string              // the ONNX file
	requests runner.Requests
	arrivals arrivals.Pattern   // when the requests of a rate arrive
	unlike   string             // why they may arrive otherwise than in the campaign; else ""
	values   string             // why the requests' values are not the campaign's rows, though it had some; else ""
	build    Build              // the build that serves it here
	policies []isolation.Policy // which give it processors of its own on the measured machine; none if it shares all
}

// otherBuild reports whether another ONNX Runtime than the measured one serves the model.
func (s subject) otherBuild() bool { return s.build.Name != s.reported.Runtime }

// tunedOn names the ONNX Runtime of the measurement.
func (s subject) tunedOn() string {
	if s.reported.Runtime == "" {
		return "a server's own ONNX Runtime"
	}
	return s.reported.Runtime
}

// open reads an exported model. Its requests are those of its campaign, which is in the folder input,
// or else in the manifest's. Without the campaign or its rows, values are random, in the measured mix
// of shapes, or in the shapes of the added warm-up, which are the measured ones.
func open(repository string, m export.ManifestModel, input string) (subject, error) {
	folder, err := modelrepo.OpenModel(filepath.Join(repository, m.Name))
	if err != nil {
		return subject{}, err
	}
	s := subject{reported: m}
	if s.policies, err = isolation.Parse(m.HostPolicies); err != nil {
		return subject{}, fmt.Errorf("model %q: host_policies: %w", m.Name, err)
	}
	if s.config, err = folder.Config(); err != nil {
		return subject{}, err
	}
	if s.file, err = folder.ModelFile(); err != nil {
		return subject{}, err
	}
	model, err := onnx.Read(s.file)
	if err != nil {
		return subject{}, err
	}
	c, err := readCampaign(m, input)
	if err != nil {
		return subject{}, err
	}
	s.arrivals, s.unlike = arrivalsOf(m, c)
	if s.requests, s.values, err = recordedRequests(m, c, model, s.config); err != nil || s.requests != nil {
		return s, err
	}
	if m.Mix != nil {
		s.requests, err = requestsOf(spec.Profile{}, m, profile.Subject{Model: model, Config: s.config})
		return s, err
	}
	derived, err := inputs.Derive(model, inputs.Options{Shape: shapes(model, s.config)})
	if err != nil {
		return subject{}, fmt.Errorf("model %q: %w", m.Name, err)
	}
	for i := range payload.Variety {
		s.requests = append(s.requests, payload.Fill(m.Name, s.config.GetMaxBatchSize() > 0, derived, inputs.Generate(derived, m.Load.BatchSize, uint64(i))))
	}
	return s, nil
}

// shapes returns the inputs' shapes in the warm-up that the export added, without the batch
// dimension of a model that has one. The user's own warm-up may have other shapes.
func shapes(model *onnx.Model, config *modelconfig.Config) map[string][]int64 {
	found := map[string][]int64{}
	batches := inputs.Batches(model)
	warmUp := modelrepo.AddedWarmup(config).GetInputs()
	for _, v := range model.Inputs() {
		dims, own := slices.Clone(warmUp[v.Name].GetDims()), len(v.Shape)
		if batches {
			own--
		}
		if batches && config.GetMaxBatchSize() == 0 && len(dims) > own {
			dims = dims[1:]
		}
		if len(dims) == own && own > 0 {
			found[v.Name] = dims
		}
	}
	return found
}

// instances returns the number of instances of the configuration on a machine with this many GPUs.
func (s subject) instances(gpus int) int { return max(1, modelconfig.Instances(s.config, gpus)) }
