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
	"tuner/model/tensors"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/runner"
	"tuner/runner/payload"
	"tuner/spec"
)

// subject is an exported model, with requests for it.
type subject struct {
	reported export.ManifestModel
	config   *modelconfig.Config // in the repository
	file     string              // the ONNX file, or the folder of a model without one
	model    *onnx.Model         // in the file; nil without one
	requests runner.Requests
	stages   []subject          // the models that a pipeline calls, without requests
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
	s, err := openFolder(repository, m)
	if err != nil {
		return subject{}, err
	}
	c, err := readCampaign(m, input)
	if err != nil {
		return subject{}, err
	}
	s.arrivals, s.unlike = arrivalsOf(m, c)
	own := profile.Subject{Model: s.model, Config: s.config}
	if len(m.Stages) > 0 {
		if own, err = s.openStages(repository, c); err != nil {
			return subject{}, err
		}
	}
	if s.requests, s.values, err = recordedRequests(m, c, own); err != nil || s.requests != nil {
		return s, err
	}
	if m.Mix != nil || len(m.Stages) > 0 {
		if s.requests, err = requestsOf(spec.Profile{}, m, own); err != nil && c == nil {
			err = fmt.Errorf("%w; or name the folder of its campaign with --input", err)
		}
		return s, err
	}
	derived, err := inputs.Derive(s.model, inputs.Options{Shape: shapes(s.model, s.config)})
	if err != nil {
		return subject{}, fmt.Errorf("model %q: %w", m.Name, err)
	}
	for i := range payload.Variety {
		s.requests = append(s.requests, payload.Fill(m.Name, s.config, derived, inputs.Generate(derived, m.Load.BatchSize, uint64(i))))
	}
	return s, nil
}

// openFolder reads the folder of an exported model.
func openFolder(repository string, m export.ManifestModel) (subject, error) {
	folder, err := modelrepo.OpenModel(filepath.Join(repository, m.Name))
	if err != nil {
		return subject{}, err
	}
	s := subject{reported: m, file: folder.Dir}
	if s.policies, err = isolation.Parse(m.HostPolicies); err != nil {
		return subject{}, fmt.Errorf("model %q: host_policies: %w", m.Name, err)
	}
	if s.config, err = folder.Config(); err != nil || modelconfig.IsForeign(s.config) {
		return s, err
	}
	if s.file, err = folder.ModelFile(); err != nil {
		return subject{}, err
	}
	s.model, err = onnx.Read(s.file)
	return s, err
}

// openStages reads the models that a pipeline calls. It returns the pipeline as its campaign had it: with the
// tensors of its configuration, and random values as its stages take them.
func (s *subject) openStages(repository string, c *campaign.Campaign) (profile.Subject, error) {
	folders := s.reported.Folders()
	var called []tensors.Called
	for i, m := range folders[:len(folders)-1] {
		stage, err := openFolder(repository, m)
		if err != nil {
			return profile.Subject{}, err
		}
		s.stages = append(s.stages, stage)
		if stage.model == nil {
			continue
		}
		one := tensors.Called{Name: m.Name, Model: stage.model}
		if c != nil && i < len(c.Profile.Models) {
			one.Shapes = c.Profile.Models[i].Inputs.Shape
		}
		called = append(called, one)
	}
	return profile.Subject{Model: tensors.Of(s.config), Config: s.config, Values: tensors.Values(s.config, called)}, nil
}

// isServedAs reports whether a server's configuration is that of the file, with the defaults that servers add
// (modelconfig.Complete), such as a preferred batch size. gpus is the number of the server's GPUs.
func (s subject) isServedAs(config *modelconfig.Config, gpus int) bool {
	complete, err := modelconfig.Complete(s.config, modelconfig.CompleteOptions{DirName: s.reported.Name, GPUs: gpus})
	return err == nil && modelconfig.Equal(config, complete)
}

// folders lists the subjects with a folder in the repository: the stages of a pipeline and then itself.
func (s subject) folders() []subject { return append(slices.Clone(s.stages), s) }

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

// instances returns the number of instances of the configuration on a machine with this many GPUs: of a pipeline,
// those of the stage with the most.
func (s subject) instances(gpus int) int {
	n := max(1, modelconfig.Instances(s.config, gpus))
	for _, stage := range s.stages {
		n = max(n, stage.instances(gpus))
	}
	return n
}

// maxBatch returns the largest batch of the configuration, 0 without batching: of a pipeline, that of the stage
// with the largest.
func (s subject) maxBatch() int {
	n := int(s.config.GetMaxBatchSize())
	for _, stage := range s.stages {
		n = max(n, stage.maxBatch())
	}
	return n
}
