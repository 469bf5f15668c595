package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// pages: requests that a web page in the user's browser sends.
func pages() []attack {
	return []attack{
		{"B9", "calls with effects by a page of another site", "403, no effect", foreignOrigin},
		{"B9", "a page whose name leads to this machine (DNS rebinding)", "403", rebinding},
	}
}

func foreignOrigin(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"})
	if err != nil {
		return "", err
	}
	tried := 0
	for _, origin := range []string{"https://evil.example", "http://localhost:1", "null", "http://127.0.0.1"} {
		for _, path := range []string{"/v2/repository/models/simple/unload", "/v2/repository/models/other/load", "/v2/repository/index", inferSimple} {
			body, _ := sum()
			status, text, err := v.send(ctx, "POST", path, []byte(body), "Origin", origin, "Content-Type", "text/plain")
			if tried++; err != nil || status != 403 {
				return "", errors.Join(fmt.Errorf("%s from %s got %d %s", path, origin, status, cell(text)), err)
			}
		}
	}
	return fmt.Sprintf("%d calls refused", tried), v.serves(ctx)
}

func rebinding(ctx context.Context, s *scene) (string, error) {
	if err := s.add("simple", "simple", ""); err != nil {
		return "", err
	}
	v, err := s.serve(ctx, "", []string{"simple"})
	if err != nil {
		return "", err
	}
	port := v.at.HTTP[strings.LastIndexByte(v.at.HTTP, ':'):]
	for _, host := range []string{"evil.example", "evil.example" + port, "localhost.evil.example", "127.0.0.1.evil.example" + port, "10.0.0.1"} {
		for _, method := range []string{"GET", "POST"} {
			status, text, err := v.send(ctx, method, map[string]string{"GET": "/v2/models/simple", "POST": inferSimple}[method], nil, "Host", host)
			if err != nil || status != 403 {
				return "", errors.Join(fmt.Errorf("%s from %s got %d %s", method, host, status, cell(text)), err)
			}
		}
	}
	return "10 requests refused", v.serves(ctx)
}
