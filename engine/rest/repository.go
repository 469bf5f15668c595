package rest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/valyala/fasthttp"

	"tuner/engine"
	"tuner/engine/api"
)

// repository serves /v2/repository[/REPO]/index and /v2/repository[/REPO]/models/NAME/load|unload.
func (f *Frontend) repository(ctx *fasthttp.RequestCtx, parts []string) {
	named := false
	if len(parts) == 2 && parts[1] == "index" || len(parts) == 4 && parts[1] == "models" {
		named, parts = true, parts[1:]
	}
	switch {
	case len(parts) == 1 && parts[0] == "index": // over HTTP, Triton ignores the repository's name here
		f.post(ctx, func() { f.index(ctx) })
	case len(parts) == 3 && parts[0] == "models" && (parts[2] == "load" || parts[2] == "unload"):
		f.post(ctx, func() {
			if named {
				fail(ctx, engine.Errorf(engine.Unsupported, "'repository_name' specification is not supported"))
				return
			}
			f.control(ctx, parts[1], parts[2])
		})
	default:
		notFound(ctx)
	}
}

func (f *Frontend) index(ctx *fasthttp.RequestCtx) {
	var r api.IndexRequest
	if err := decodeBody(ctx.Request.Body(), &r); err != nil {
		fail(ctx, err)
		return
	}
	answer(ctx)(f.server.Index(r.Ready))
}

// decodeBody reads an optional JSON body.
func decodeBody(body []byte, out any) error {
	if len(body) == 0 {
		return nil
	}
	s := &scanner{data: body}
	err := s.skipOne()
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return parseError(err)
	}
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(body, out); errors.As(err, &wrong) {
		kind := map[reflect.Kind]string{reflect.Bool: "boolean", reflect.Map: "object"}[wrong.Type.Kind()]
		return engine.Errorf(engine.Internal, "%v", &kindError{cmp.Or(kind, wrong.Type.String())})
	} else if err != nil {
		return parseError(err)
	}
	return nil
}

// control loads or unloads a model.
func (f *Frontend) control(ctx *fasthttp.RequestCtx, name, verb string) {
	var r api.LoadRequest
	err := decodeBody(ctx.Request.Body(), &r)
	if err != nil {
		fail(ctx, err)
		return
	}
	if verb == "unload" {
		err = f.server.Unload(name)
	} else {
		var o engine.Override
		if o, err = override(r.Parameters); err == nil {
			err = f.server.Load(untilAnswered(ctx), name, o)
		}
	}
	if err != nil {
		fail(ctx, err)
	}
}

// override reads the parameters of a load request.
func override(parameters map[string]any) (engine.Override, error) {
	o := engine.Override{Files: map[string][]byte{}}
	for key, value := range parameters {
		text, ok := value.(string)
		if !ok {
			return o, engine.Errorf(engine.Internal, "attempt to access JSON non-string as string")
		}
		path, isFile := strings.CutPrefix(key, "file:")
		switch {
		case isFile:
			data, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return o, engine.Errorf(engine.InvalidArgument, "cannot decode parameter '%s': %v", key, err)
			}
			o.Files[path] = data
		case key == "config":
			o.Config = text
		default:
			return o, engine.Errorf(engine.Internal, "unexpected error on creating Triton parameter")
		}
	}
	return o, nil
}
