package verify

import (
	"errors"
	"fmt"
	"io/fs"

	"tuner/export"
	"tuner/internal/exit"
	"tuner/model/modelconfig"
	"tuner/model/onnx"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/runner"
	"tuner/spec"
)

// readCampaign reads the campaign of an exported model: in the folder input, or if that is "" in the
// one that the manifest names. It returns nil if the folder has no campaign.
func readCampaign(m export.ManifestModel, input string) (*campaign.Campaign, error) {
	if input == "" {
		input = m.Input
	}
	c, err := campaign.Read(input)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot read the campaign in %q: %w", input, err))
	}
	return &c, nil
}

// readRows reads the rows that a campaign's requests were drawn from: nil if its requests had random
// values. The reason says why the same rows are not available; it is "" if they are.
func readRows(c campaign.Campaign, m *onnx.Model) (rows *profile.Rows, reason string, err error) {
	recorded := c.Header.Requests
	if recorded == nil {
		return nil, "", nil
	}
	rows, err = profile.ReadRows(c.Profile, m)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Sprintf("the campaign's rows (%s) are gone", recorded.Name), nil
	case err != nil:
		return nil, "", err
	case rows.Record.SHA256 != recorded.SHA256:
		return nil, fmt.Sprintf("the campaign's rows (%s) have changed", recorded.Name), nil
	}
	return rows, "", nil
}

// recordedRequests makes requests for an exported model as its campaign did: in the same shapes, and
// from the same rows. It returns nil if there is no campaign, or if its rows are not available. Then
// the reason says why.
func recordedRequests(m export.ManifestModel, input string, model *onnx.Model, config *modelconfig.Config) (requests runner.Requests, reason string, err error) {
	c, err := readCampaign(m, input)
	if err != nil || c == nil {
		return nil, "", err
	}
	rows, reason, err := readRows(*c, model)
	if err != nil || reason != "" {
		return nil, reason, err
	}
	requests, err = requestsOf(c.Profile, m, profile.Subject{Model: model, Config: config, Rows: rows})
	return requests, "", err
}

// requestsOf makes the requests of a subject with a campaign's seed, and with the measured client
// batch and mix of shapes.
func requestsOf(p spec.Profile, m export.ManifestModel, s profile.Subject) (runner.Requests, error) {
	p.Load.BatchSize = max(m.Load.BatchSize, 1)
	s.Name, s.Mix = m.Name, m.Mix
	return profile.Requests(p, s)
}
