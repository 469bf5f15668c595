package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tuner/engine/api"
)

// requests: well-framed requests with hostile content, and options for missing features.
func requests() []attack {
	return []attack{
		{"B6", "options that would change what is served", "refused with exit code 2", options12},
		{"B12", "outputs that are asked for twice, an index nested 250,000 deep", "400", duplicates},
		{"B13", "shared memory and trace calls over HTTP", "the answers that gRPC gives", extensions},
		{"§2", "JSON: depth 10^6, 10^7 numbers, 65,000 inputs, sizes that wrap", "refused with a text, memory bounded", hostileJSON},
		{"A16", "49,000 mistakes in a request, a name of 5 MB", "an error text of less than 64 kB", longTexts},
	}
}

func options12(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	flags := []string{"--cache-config=redis,host=localhost", "--model-control-mode=other"}
	for _, flag := range flags {
		o, err := s.tunes(ctx, "serve", "--model-repository=repository", "--http-port=0", "--grpc-port=0", "--metrics-port=0", flag)
		if err != nil {
			return "", err
		}
		if _, err := o.refused(2, "is not supported"); err != nil {
			return "", fmt.Errorf("%s: %w", flag, err)
		}
	}
	return fmt.Sprintf("%d options refused", len(flags)), nil
}

// simple serves the model simple.
func (s *scene) simple(ctx context.Context) (*server, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return nil, err
	}
	return s.serve(ctx, "", []string{"simple"})
}

func duplicates(ctx context.Context, s *scene) (string, error) {
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	body, _ := sum()
	twice := strings.Replace(body, `{"inputs"`, `{"outputs":[{"name":"OUTPUT0"},{"name":"OUTPUT0"}],"inputs"`, 1)
	nested := `{"ready":` + strings.Repeat("[", 250_000) + strings.Repeat("]", 250_000) + "}"
	for path, text := range map[string]string{inferSimple: twice, "/v2/repository/index": nested} {
		status, answer, err := v.send(ctx, "POST", path, []byte(text))
		if err != nil || status != 400 {
			return "", errors.Join(fmt.Errorf("%s got %d %s", path, status, cell(answer)), err)
		}
	}
	return "400 both", v.serves(ctx)
}

// extensions sends the HTTP requests that clients send before they start.
func extensions(ctx context.Context, s *scene) (string, error) {
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	for path, want := range map[string]int{
		"GET /v2/systemsharedmemory/status": 200, "GET /v2/cudasharedmemory/status": 200, "POST /v2/systemsharedmemory/unregister": 200,
		"POST /v2/cudasharedmemory/unregister": 200, "GET /v2/systemsharedmemory/region/none/status": 404, "POST /v2/systemsharedmemory/region/none/register": 501,
	} {
		method, target, _ := strings.Cut(path, " ")
		status, text, err := v.send(ctx, method, target, nil)
		if err != nil || status != want {
			return "", errors.Join(fmt.Errorf("%s got %d %s, want %d", path, status, cell(text), want), err)
		}
	}
	return "6 answers as over gRPC", nil
}

func hostileJSON(ctx context.Context, s *scene) (string, error) {
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	body, _ := sum()
	with := func(old, text string) string { return strings.Replace(body, old, text, 1) }
	many := strings.Repeat("1,", 10_000_000) + "1"
	input := `{"name":"X","datatype":"INT32","shape":[1],"data":[1]},`
	texts := map[string]string{
		"depth":            strings.Repeat(`{"a":`, 1_000_000),
		"numbers":          with(`"data":[`, `"data":[`+many+","),
		"a long shape":     with(`"shape":[`, `"shape":[`+many+","),
		"65,000 inputs":    with(`"inputs":[`, `"inputs":[`+strings.Repeat(input, 65_000)),
		"2^62":             with(`"shape":[1,16]`, `"shape":[4611686018427387904,16]`),
		"2^63":             with(`"shape":[1,16]`, `"shape":[9223372036854775808,16]`),
		"negative":         with(`"shape":[1,16]`, `"shape":[-1,-16]`),
		"a fraction":       with(`"shape":[1,16]`, `"shape":[1.5,16]`),
		"wraps to 16":      with(`"shape":[1,16]`, `"shape":[1152921504606846977,16]`),
		"NaN in INT32":     with(`"data":[`, `"data":[NaN,`),
		"another type":     with(`"INT32"`, `"FP64"`),
		"an empty request": "{}",
		"half":             body[:len(body)/2],
		"NUL":              "\x00" + body,
		"a negative size":  with(`"data":`, `"parameters":{"binary_data_size":-4},"data":`),
	}
	for name, text := range texts {
		status, answer, err := v.send(ctx, "POST", inferSimple, []byte(text))
		// Triton answers some of them with 500
		if err != nil || status < 400 || !strings.HasPrefix(answer, `{"error":`) {
			return "", errors.Join(fmt.Errorf("%s: got %d %s", name, status, cell(answer)), err)
		}
	}
	for name, header := range map[string]string{"a header longer than the body": "99999999", "a negative header": "-1", "no number": "x", "an overflow": "18446744073709551617"} {
		status, answer, err := v.send(ctx, "POST", inferSimple, []byte(body), api.HeaderLength, header)
		if err != nil || status < 400 || status >= 500 {
			return "", errors.Join(fmt.Errorf("%s: got %d %s", name, status, cell(answer)), err)
		}
	}
	if err := v.serves(ctx); err != nil {
		return "", err
	}
	seen, err := v.bounded(1 << 30)
	return fmt.Sprintf("%d refused, %s", len(texts)+4, seen), err
}

func longTexts(ctx context.Context, s *scene) (string, error) {
	v, err := s.simple(ctx)
	if err != nil {
		return "", err
	}
	body, _ := sum()
	var longest int
	unknown := strings.Builder{}
	for i := range 49_000 {
		fmt.Fprintf(&unknown, `{"name":"X%d","datatype":"INT32","shape":[1],"data":[1]},`, i)
	}
	name := strings.Repeat("n", 5<<20)
	for path, text := range map[string]string{
		inferSimple:                              strings.Replace(body, `"inputs":[`, `"inputs":[`+unknown.String(), 1),
		inferSimple + "?":                        strings.Replace(body, "INPUT0", name, 1),
		"/v2/repository/models/simple/load":      `{"parameters":{"config":"{` + strings.Repeat(`\"unknown_field\":1,`, 49_000) + `\"name\":\"simple\"}"}}`,
		"/v2/repository/models/simple/load?":     `{"parameters":{"config":"{\"name\":\"` + name + `\"}"}}`,
		"/v2/repository/models/" + "none/unload": `{"parameters":{"` + name + `":true}}`,
	} {
		begin := time.Now()
		status, answer, err := v.send(ctx, "POST", path, []byte(text))
		if err != nil || len(answer) > 64<<10 || time.Since(begin) > 5*time.Second {
			return "", errors.Join(fmt.Errorf("%s: got %d with %d bytes after %v", path, status, len(answer), time.Since(begin)), err)
		}
		longest = max(longest, len(answer))
	}
	return fmt.Sprintf("the longest text has %d bytes", longest), v.serves(ctx)
}
