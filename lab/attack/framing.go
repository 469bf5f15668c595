package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tuner/internal/proxytest"
)

// smuggled is hidden in the bodies of requests. An answer to it is recognizable.
const smuggled = "GET /v2/models/SMUGGLED HTTP/1.1\r\nHost: localhost\r\n\r\n"

// unload is a request that a proxy in front forbids.
const unload = "POST /v2/repository/models/simple/unload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"

// ambiguous returns requests whose end two programs might see at different places, with another one
// hidden in them.
func ambiguous(path, hidden string) []string {
	const chunked = "Transfer-Encoding: chunked\r\n"
	sized := fmt.Sprintf("Content-Length: %d\r\n", len(hidden))
	var all []string
	for _, headers := range []string{
		strings.Replace(sized, ":", " :", 1), strings.Replace(sized, ":", "\t:", 1), "Content-Length: 0\r\n" + sized, sized + "Content-Length: 0\r\n",
		"Content-Length: 0, 57\r\n", "Content-Length: +57\r\n", "Content-Length: 0x39\r\n", "Content-Length: 5 7\r\n", "Content-Length:\r\n 57\r\n",
		"X: a\n" + sized, "X: a\r" + sized, "X: a\r\n " + sized, "Content Length: 57\r\n", "Content-Length\r\n",
		"Transfer-Encoding: identity\r\n" + sized, "Transfer-Encoding: \r\n" + sized,
	} {
		all = append(all, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\n"+headers+"\r\n"+hidden)
	}
	for _, headers := range []string{
		sized + chunked, chunked + sized, chunked + chunked, strings.Replace(chunked, ":", " :", 1), chunked + "Transfer-Encoding: identity\r\n",
		"Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: xchunked\r\n",
		"Transfer-Encoding: \vchunked\r\n", "Transfer-Encoding: \"chunked\"\r\n", "Transfer-Encoding:\r\n\tchunked\r\n", "X: a\r\nTransfer-Encoding: chunked\n",
	} {
		all = append(all, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\n"+headers+"\r\n0\r\n\r\n"+hidden)
	}
	for _, chunk := range []string{"+0", "-0", "0x0", " 0", "10000000000000000", "0;a\nb", "g"} {
		all = append(all, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\n"+chunked+"\r\n"+chunk+"\r\n\r\n"+hidden)
	}
	return append(all,
		"POST "+path+" HTTP/1.0\r\n"+chunked+"\r\n0\r\n\r\n"+hidden,
		"POST "+path+" HTTP/1.1\r\nHost: localhost\r\n"+chunked+"\r\n2\n{}\r\n0\r\n\r\n"+hidden,
		"POST "+path+" HTTP/1.1\r\nHost: localhost\r\n"+chunked+"\r\n1\r\n{}\r\n0\r\n\r\n"+hidden)
}

// framing: requests that two programs read differently.
func framing() []attack {
	var all = []attack{{"A3", "38 requests with two readings, straight", "each is refused, nothing behind it is answered", smuggle}}
	for _, p := range proxytest.All() {
		all = append(all, attack{"A3", "38 requests with two readings through " + p.Name, "nobody gets past the proxy, nobody gets another's answer", through(p)})
	}
	return append(all, attack{"A16", "HTTP/9.9, no Host, two Hosts, HTTP/0.9", "refused with 400 or 505", versions},
		attack{"A16", "Expect: 100-continue for a body of 1 TiB", "413 and no 100", enormous},
		attack{"§2", "the restricted API in 60 other spellings", "403 or 404, no effect", spellings},
		attack{"§2", "400,000 calls over gRPC that are reset at once", "others are served, memory bounded", rapidResets},
		attack{"§2", "floods of CONTINUATION, SETTINGS, PING and empty DATA", "others are served, memory bounded", floods})
}

func smuggle(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"})
	if err != nil {
		return "", err
	}
	requests := ambiguous("/v2/repository/index", smuggled)
	for _, text := range requests {
		got, err := raw(ctx, "tcp", v.at.HTTP, text)
		if err != nil {
			return "", err
		}
		// The answer may be lost, since the server closes the connection without reading the rest.
		if len(got) > 1 || len(got) == 1 && got[0].status != 400 {
			return "", fmt.Errorf("%q got %v", text, got)
		}
	}
	return fmt.Sprintf("%d refused with 400", len(requests)), v.serves(ctx)
}

// through returns an attack that sends the corpus through a proxy.
func through(p proxytest.Proxy) func(context.Context, *scene) (string, error) {
	return func(ctx context.Context, s *scene) (string, error) {
		if !p.IsInstalled() {
			return "", notRun(p.Program + " is not installed")
		}
		if err := s.add("simple", "simple", ""); err != nil {
			return "", err
		}
		v, err := s.serve(ctx, "", []string{"simple"})
		if err != nil {
			return "", err
		}
		socket, stop, err := p.Start(ctx, s.dir, v.at.HTTP, io.Discard)
		if err != nil {
			return "", err
		}
		defer stop()
		return v.behind(ctx, socket)
	}
}

// behind sends ambiguous requests to a proxy in front of the server, and looks for their effects.
func (v *server) behind(ctx context.Context, socket string) (string, error) {
	if got, err := raw(ctx, "unix", socket, unload); err != nil || len(got) != 1 || got[0].status != 403 {
		return "", errors.Join(fmt.Errorf("the proxy does not keep clients from model control: %v", got), err)
	}
	requests := ambiguous(inferSimple, unload)
	for _, text := range requests {
		if _, err := raw(ctx, "unix", socket, text); err != nil {
			return "", err
		}
		if err := v.adds(ctx, 10*time.Second); err != nil {
			return "", fmt.Errorf("after %q: %w", text, err)
		}
		got, err := raw(ctx, "unix", socket, "GET /v2/models/simple HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if err != nil || len(got) != 1 || got[0].status != 200 || !strings.HasPrefix(got[0].body, `{"name":"simple"`) {
			return "", errors.Join(fmt.Errorf("after %q another client got %v", text, got), err)
		}
	}
	return fmt.Sprintf("%d requests without effect", len(requests)), nil
}

func versions(ctx context.Context, s *scene) (string, error) {
	v, err := s.serve(ctx, "", nil)
	if err != nil {
		return "", err
	}
	for text, want := range map[string]int{
		"GET /v2 HTTP/9.9\r\nHost: localhost\r\n\r\n": 505, "GET /v2 HTTP/2.0\r\nHost: localhost\r\n\r\n": 505, "GET /v2 HTTP/1.1\r\n\r\n": 400,
		"GET /v2 HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n": 400, "GET /v2\r\n\r\n": 400, "GET  /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n": 400,
	} {
		got, err := raw(ctx, "tcp", v.at.HTTP, text)
		if err != nil || len(got) != 1 || got[0].status != want {
			return "", errors.Join(fmt.Errorf("%q got %v, want %d", text, got, want), err)
		}
	}
	return "6 refused", v.alive(ctx)
}

func enormous(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"})
	if err != nil {
		return "", err
	}
	for _, path := range []string{inferSimple, "/v2/repository/models/simple/load"} {
		got, err := raw(ctx, "tcp", v.at.HTTP, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1099511627776\r\n\r\n")
		if err != nil || len(got) != 1 || got[0].status != 413 {
			return "", errors.Join(fmt.Errorf("%s got %v, want 413", path, got), err)
		}
	}
	return "413", v.serves(ctx)
}

func spellings(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"}, "--http-restricted-api=model-repository:key=value")
	if err != nil {
		return "", err
	}
	const path = "/v2/repository/models/simple/unload"
	tried := 0
	for _, target := range []string{path, "/" + path, "/v2//repository/models/simple/unload", "/v2/./repository/models/simple/unload", "/v2/x/../repository/models/simple/unload",
		"/v2/%72epository/models/simple/unload", "/V2/repository/models/simple/unload", "/v2/repository/models/simple/unload/", path + "?x", path + "#x", path + "%00",
		"http://localhost" + path, "//localhost" + path, "/v2/repository/models/simple/unload;x", `/v2\repository\models\simple\unload`} {
		for _, header := range []string{"", "key: \r\n", "key : value\r\n", "Key: valu\r\n"} {
			got, err := raw(ctx, "tcp", v.at.HTTP, "POST "+target+" HTTP/1.1\r\nHost: localhost\r\n"+header+"Content-Length: 0\r\nConnection: close\r\n\r\n")
			if tried++; err != nil || len(got) > 0 && !slices.Contains([]int{400, 403, 404}, got[0].status) {
				return "", errors.Join(fmt.Errorf("%q with %q got %v", target, header, got), err)
			}
		}
	}
	return fmt.Sprintf("%d spellings refused", tried), v.serves(ctx)
}

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}) + payload
}

// block returns the header block of a call over gRPC, without compression.
func block(method string) string {
	var b strings.Builder
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/inference.GRPCInferenceService/" + method}, {":authority", "localhost"},
		{"content-type", "application/grpc"}, {"te", "trailers"}} {
		b.WriteByte(0) // literal, new name, not indexed
		for _, text := range field {
			b.WriteByte(byte(len(text)))
			b.WriteString(text)
		}
	}
	return b.String()
}

// pours sends frames on gRPC connections without reading, until all are sent or the server closes
// the connection.
func (v *server) pours(ctx context.Context, connections int, text func(i int) string) error {
	for range connections {
		conn, err := dial(ctx, "tcp", v.at.GRPC)
		if err != nil {
			return err
		}
		go func() { _, _ = conn.Read(make([]byte, 1<<20)) }() // until it is closed below
		_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, err = conn.Write([]byte(preface + frame(4, 0, 0, "")))
		for i := 0; err == nil; i++ {
			part := text(i)
			if part == "" {
				break
			}
			_, err = conn.Write([]byte(part))
		}
		_ = conn.Close()
		if err := v.alive(ctx); err != nil {
			return err
		}
	}
	return nil
}

func rapidResets(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"})
	if err != nil {
		return "", err
	}
	head := block("ModelInfer")
	err = v.pours(ctx, 4, func(i int) string {
		if i >= 1000 {
			return ""
		}
		var b strings.Builder
		for j := range 100 {
			stream := uint32(2*(100*i+j) + 1)
			b.WriteString(frame(1, 4, stream, head) + frame(3, 0, stream, "\x00\x00\x00\x08"))
		}
		return b.String()
	})
	if err := errors.Join(err, v.serves(ctx)); err != nil {
		return "", err
	}
	return v.bounded(512 << 20)
}

func floods(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"})
	if err != nil {
		return "", err
	}
	repeat := func(first, text string) func(i int) string {
		many := strings.Repeat(text, 1000)
		return func(i int) string {
			switch {
			case i == 0:
				return first + many
			case i < 200:
				return many
			}
			return ""
		}
	}
	open := frame(1, 0, 1, block("ModelInfer"))
	for name, text := range map[string]func(int) string{
		"empty CONTINUATION":  repeat(open, frame(9, 0, 1, "")),
		"CONTINUATION":        repeat(open, frame(9, 0, 1, "\x00\x01a\x7f"+strings.Repeat("b", 127))),
		"SETTINGS":            repeat("", frame(4, 0, 0, "\x00\x04\x00\x00\xff\xff")),
		"PING":                repeat("", frame(6, 0, 0, "12345678")),
		"empty DATA":          repeat(frame(1, 4, 1, block("ModelInfer")), frame(0, 0, 1, "")),
		"WINDOW_UPDATE":       repeat("", frame(8, 0, 0, "\x00\x00\x00\x01")),
		"an unknown frame":    repeat("", frame(0x77, 0, 0, "12345678")),
		"a frame of 16 MB":    repeat("", string([]byte{255, 255, 255, 0, 0, 0, 0, 0, 1})),
		"streams of even ids": repeat("", frame(1, 4, 2, block("ModelInfer"))),
	} {
		if err := v.pours(ctx, 1, text); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := v.serves(ctx); err != nil {
		return "", err
	}
	return v.bounded(512 << 20)
}
