package rest

import (
	"context"
	"encoding/base64"
	"strings"

	"tuner/engine"
)

// repository serves the index of the model repository, and loads and unloads models.
func (f *Frontend) repository(b *reader, at *route) {
	if at.named && at.verb != repositoryIndex { // for the index, Triton ignores the repository's name
		fail(b.ctx, engine.Errorf(engine.Unsupported, "'repository_name' specification is not supported"))
		return
	}
	var d document
	body, err := b.read(nil)
	if err == nil && len(body) > 0 {
		err = d.parse(body)
	}
	if err != nil {
		fail(b.ctx, err)
		return
	}
	if len(body) == 0 {
		d.nodes = []node{{kind: '{', next: 1}}
	}
	name := string(at.model)
	switch at.verb {
	case repositoryIndex:
		f.index(b, &d)
		return
	case modelUnload:
		err = f.server.Unload(name)
	default:
		var o engine.Override
		if o, err = override(&d); err == nil {
			err = f.server.Load(context.WithoutCancel(b.ctx), name, o) // what has begun ends, also if the server does
		}
	}
	if err != nil {
		fail(b.ctx, err)
	}
}

func (f *Frontend) index(b *reader, d *document) {
	var ready bool
	if i := d.find(0, "ready"); i != nothing {
		var err error
		if ready, err = d.bool(i); err != nil {
			fail(b.ctx, err)
			return
		}
	}
	value, err := f.server.Index(ready)
	reply(b.ctx, value, err)
}

// override reads the parameters of a load request.
func override(d *document) (engine.Override, error) {
	o := engine.Override{Files: map[string][]byte{}}
	all := d.find(0, "parameters")
	switch {
	case all == nothing:
		return o, nil
	case d.nodes[all].kind != '{':
		return o, engine.Errorf(engine.Internal, "attempt to get members for non-object")
	}
	for i := all + 1; i < d.nodes[all].next; i = d.nodes[i].next {
		value, err := d.string(i)
		if err != nil {
			return o, err
		}
		key := string(d.key(i))
		path, isFile := strings.CutPrefix(key, "file:")
		switch {
		case isFile:
			data := make([]byte, base64.StdEncoding.DecodedLen(len(value)))
			n, err := base64.StdEncoding.Decode(data, value)
			if err != nil {
				return o, engine.Errorf(engine.InvalidArgument, "cannot decode parameter '%s': %v", key, err)
			}
			o.Files[path] = data[:n]
		case key == "config":
			o.Config = string(value)
		default:
			return o, engine.Errorf(engine.Internal, "unexpected error on creating Triton parameter")
		}
	}
	return o, nil
}
