package grpcapi

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"tuner/engine"
	"tuner/engine/api"
)

// Every method that is served has a category, so that it can be restricted.
func TestEveryMethodHasACategory(t *testing.T) {
	t.Parallel()
	seen := 0
	for service, info := range New(&engine.Server{}, Options{}).grpc.GetServiceInfo() {
		for _, m := range info.Methods {
			seen++
			category, known := categories[m.Name]
			if !known {
				t.Errorf("%s/%s has no category", service, m.Name)
				continue
			}
			g := guard{api.Restrictions{category: {Header: "key", Value: "secret"}}}
			if err := g.check(t.Context(), "/"+service+"/"+m.Name); status.Code(err) != codes.Unavailable {
				t.Errorf("%s/%s, restricted: got %v", service, m.Name, err)
			}
		}
	}
	if seen != len(categories) {
		t.Errorf("%d methods are served, %d have a category", seen, len(categories))
	}
}

// A method without a category is always refused. A key must match completely.
func TestGuard(t *testing.T) {
	t.Parallel()
	g := guard{api.Restrictions{api.CategoryTrace: {Header: "key", Value: "secret"}}}
	with := func(value string) context.Context {
		return metadata.NewIncomingContext(t.Context(), metadata.Pairs("key", value))
	}
	for name, tt := range map[string]struct {
		ctx    context.Context
		method string
		want   codes.Code
	}{
		"open":               {t.Context(), "/inference.GRPCInferenceService/ModelInfer", codes.OK},
		"without the key":    {t.Context(), "/inference.GRPCInferenceService/TraceSetting", codes.Unavailable},
		"with the key":       {with("secret"), "/inference.GRPCInferenceService/TraceSetting", codes.OK},
		"front of the key":   {with("secre"), "/inference.GRPCInferenceService/TraceSetting", codes.Unavailable},
		"more than the key":  {with("secrets"), "/inference.GRPCInferenceService/TraceSetting", codes.Unavailable},
		"an unknown method":  {with("secret"), "/inference.GRPCInferenceService/ModelErase", codes.Unimplemented},
		"an unknown service": {with("secret"), "/x.Y/Z", codes.Unimplemented},
		"no method":          {with("secret"), "", codes.Unimplemented},
	} {
		if err := g.check(tt.ctx, tt.method); status.Code(err) != tt.want {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
}
