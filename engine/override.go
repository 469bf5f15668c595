package engine

import (
	"errors"
	"path/filepath"

	"tuner/engine/repository"
	"tuner/engine/served"
	"tuner/model/modelconfig"
)

// source is a model to load, as found in a repository, or as a load request brought it.
type source struct {
	*repository.Model
	namespace string         // the repository; "": there are no namespaces, or it came with a load request
	override  bool           // the configuration came with the load request
	beneath   string         // with override and without files of a request: repository.Fingerprint of the folder
	temp      *served.Shared // holds the folder if that is temporary; nil otherwise
}

// isEnsemble reports whether the model consists of other models.
func (s *source) isEnsemble() bool { return s.Config.GetEnsembleScheduling() != nil }

// Override is the part of a load request that replaces data of the repository.
type Override struct {
	Config string // the whole configuration as JSON; "": config.pbtxt
	// by path within the model's folder, such as 1/model.onnx; they replace all files
	Files map[string][]byte
}

// source applies the override to the model in the repositories. With files, it makes the model from
// the override alone.
func (o Override) source(all *repository.Roots, among []string, u *repository.Uploads, name string) (*source, error) {
	if o.Config == "" {
		return nil, errors.New("override model directory requires 'config' parameter")
	}
	config, err := modelconfig.ParseJSON([]byte(o.Config))
	if err != nil {
		return nil, err
	}
	src := &source{override: true}
	if len(o.Files) > 0 {
		var remove func()
		src.Model, remove, err = u.Write(name, o.Files)
		src.temp = served.NewShared(remove)
	} else {
		src.Model, err = all.Find(among, name)
	}
	if err != nil {
		return nil, err
	}
	if src.IsRenamed {
		config.Name = name
	}
	src.Config, src.Text = config, o.Config
	if src.temp == nil {
		src.beneath, err = src.fingerprint()
	}
	return src, err
}

func (s *source) fingerprint() (string, error) {
	return repository.Fingerprint(filepath.Dir(s.Dir), filepath.Base(s.Dir))
}

// keeps reports whether a plain load of src leaves the configuration of an earlier load request in place.
// As in Triton 24.10 it does until a file of the model changes, or the model is unloaded.
func (s *source) keeps(src *source) bool {
	if s == nil || s.beneath == "" || src.override {
		return false
	}
	now, err := src.fingerprint()
	return err == nil && now == s.beneath
}

// warmupFile reads a file below the model's warmup folder.
func (s *source) warmupFile(name string, limit int64) ([]byte, error) {
	return s.ReadFile(filepath.Join(s.Dir, "warmup", name), limit)
}
