package cli

import (
	"context"
	"fmt"

	"tuner/hostinfo"
	"tuner/internal/checksum"
	"tuner/journal"
	"tuner/ortlib"
	"tuner/provider/probe"
)

// openBuild has a child process open a build (probe.Open). A build that does not open is the user's
// to correct.
func openBuild(ctx context.Context, build ortlib.Build) (ortlib.Build, error) {
	p, err := probe.New()
	if err != nil {
		return ortlib.Build{}, err
	}
	opened, err := p.Open(ctx, build)
	if err != nil {
		return ortlib.Build{}, withExit(exitUsage, err)
	}
	return opened, nil
}

// gpusOf is how many GPUs a default configuration is made for (probe.GPUs).
func gpusOf(ctx context.Context, host hostinfo.Host, find func() (ortlib.Build, error)) int {
	p, err := probe.New()
	if err != nil {
		return len(host.GPUs) // the error is reported where a build is opened
	}
	return p.GPUs(ctx, host, find)
}

// runtimeInfos are builds as the journal has them. Libraries that the user named are told apart by their content, since another one may have taken
// the place of one that was measured.
func runtimeInfos(builds []ortlib.Build) ([]journal.RuntimeInfo, error) {
	var infos []journal.RuntimeInfo
	for _, b := range builds {
		info := journal.RuntimeInfo{Flavour: b.Flavour, Version: b.Version, Library: b.Library}
		if b.Flavour == ortlib.External {
			var err error
			if info.SHA256, err = checksum.File(b.Library); err != nil {
				return nil, fmt.Errorf("cannot read ONNX Runtime library: %w", err)
			}
		}
		infos = append(infos, info)
	}
	return infos, nil
}
