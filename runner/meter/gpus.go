package meter

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"tuner/internal/hostinfo"
)

// figures are the values of a source of samples at an instant.
type figures struct {
	gpus   []hostinfo.GPUUsage
	memory int64 // bytes in use on the server's machine, by all processes; 0 unknown
}

// gpuSource is a source of GPU samples. read blocks until it has the answer or ctx ends. close may
// be called twice.
type gpuSource struct {
	read  func(ctx context.Context) (figures, error)
	close func()
}

// openGPUs chooses the source. It prefers the server's metrics page, since the server may be on
// another machine, to this machine's driver.
func openGPUs(o Options) gpuSource {
	switch {
	case o.Metrics != "":
		client := &http.Client{Transport: &http.Transport{}} // without the environment's proxy
		return gpuSource{
			read:  func(ctx context.Context) (figures, error) { return readPage(ctx, client, o.Metrics) },
			close: client.CloseIdleConnections,
		}
	case o.GPUs:
		reader, _ := hostinfo.OpenGPUs() // a machine without GPUs is valid
		return gpuSource{
			read:  func(context.Context) (figures, error) { return figures{gpus: reader.Read()}, nil },
			close: reader.Close,
		}
	}
	return gpuSource{
		read:  func(context.Context) (figures, error) { return figures{}, nil },
		close: func() {},
	}
}

// maxPage bounds a metrics page, in bytes.
const maxPage = 64 << 20

// readPage reads the figures on a metrics page.
func readPage(ctx context.Context, client *http.Client, url string) (figures, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return figures{}, fmt.Errorf("cannot read the metrics page: %w", err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return figures{}, fmt.Errorf("cannot read the metrics page: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return figures{}, fmt.Errorf("cannot read the metrics page: %s answered %q", url, answer.Status)
	}
	page, err := io.ReadAll(io.LimitReader(answer.Body, maxPage))
	if err != nil {
		return figures{}, fmt.Errorf("cannot read the metrics page of %s: %w", url, err)
	}
	seen, err := parsePage(page)
	if err != nil {
		return figures{}, fmt.Errorf("cannot read the metrics page of %s: %w", url, err)
	}
	return seen, nil
}
