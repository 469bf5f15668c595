package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"tuner/export"
	"tuner/internal/exit"
	"tuner/measure/arrivals"
	"tuner/model/onnx"
	"tuner/profile"
	"tuner/profile/campaign"
	"tuner/profile/journal"
	"tuner/runner"
	"tuner/spec"
)

// readCampaign reads the campaign of an exported model: in the folder input, or if that is "" in the
// one that the manifest names. Of a campaign of several models, or of a stage of a pipeline, it is the part of this
// one. It returns nil if the folder has no campaign of the model.
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
	case len(c.Header.Parts) == 0, c.Header.IsPipeline() && c.Header.Model == m.Name:
		return &c, nil
	}
	i := slices.IndexFunc(c.Header.Parts, func(p journal.ModelPart) bool { return p.Model == m.Name })
	if i < 0 {
		return nil, nil
	}
	c.Header, c.Profile = c.Header.Part(i), c.Profile.Models[i]
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

// arrivalsOf returns when the requests to an exported model arrive: as in its campaign, if it is there. The
// reason says why they may arrive otherwise; it is "" if they do not. A pattern that repeats would need windows
// of whole periods.
func arrivalsOf(m export.ManifestModel, c *campaign.Campaign) (pattern arrivals.Pattern, reason string) {
	switch {
	case m.Load.Concurrency > 0: // requests follow answers
		return arrivals.Pattern{}, ""
	case c == nil:
		return arrivals.Pattern{}, fmt.Sprintf("no campaign in %q tells how its requests arrived, name its folder with --input", m.Input)
	case c.Profile.Load.Arrivals.HasPeriod():
		return arrivals.Pattern{}, fmt.Sprintf("the campaign's requests arrived in a %s, and these do not", c.Profile.Load.Arrivals.Of())
	}
	return c.Profile.Load.Arrivals, ""
}

// recordedRequests makes requests for an exported model as its campaign did: in the same shapes, and
// from the same rows. It returns nil if there is no campaign, or if its rows are not available. Then
// the reason says why.
func recordedRequests(m export.ManifestModel, c *campaign.Campaign, s profile.Subject) (requests runner.Requests, reason string, err error) {
	if c == nil {
		return nil, "", nil
	}
	rows, reason, err := readRows(*c, s.Model)
	if err != nil || reason != "" {
		return nil, reason, err
	}
	s.Rows = rows
	requests, err = requestsOf(c.Profile, m, s)
	return requests, "", err
}

// requestsOf makes the requests of a subject with a campaign's seed, and with the measured client
// batch and mix of shapes.
func requestsOf(p spec.Profile, m export.ManifestModel, s profile.Subject) (runner.Requests, error) {
	p.Load.BatchSize = max(m.Load.BatchSize, 1)
	s.Name, s.Mix = m.Name, m.Mix
	return profile.Requests(p, s)
}
