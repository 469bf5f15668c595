package rest

import (
	"context"
	"encoding/base64"
	"strings"

	"tuner/engine"
	"tuner/engine/fault"
)

// repository serves the index of the model repository, and loads and unloads models.
func (f *Frontend) repository(b *reader, at *route) {
	if at.named && at.verb != repositoryIndex { // for the index, Triton ignores the repository's name
		fail(b.ctx, fault.Errorf(fault.Unsupported, "'repository_name' specification is not supported"))
		return
	}
	var err error
	switch at.verb {
	case repositoryIndex:
		f.index(b)
		return
	case modelUnload:
		err = f.unload(b, string(at.model))
	default:
		err = f.load(b, string(at.model))
	}
	if err != nil {
		fail(b.ctx, err)
	}
}

func (f *Frontend) load(b *reader, name string) error {
	d, err := readDocument(b)
	if err == nil {
		err = b.reserve(len(d.text)) // for the decoded files
	}
	if err != nil {
		return err
	}
	o, err := override(d)
	if err != nil {
		return err
	}
	// a load that has begun goes to its end, even if the server ends
	return f.server.Load(context.WithoutCancel(b.ctx), name, o)
}

// unload unloads a model. As in Triton, a body that cannot be read counts as none.
func (f *Frontend) unload(b *reader, name string) error {
	body, err := b.read(nil)
	if err != nil {
		return err
	}
	d := &document{}
	if len(body) > 0 && d.parse(body) == nil {
		if all := d.find(0, "parameters"); all != nothing && d.nodes[all].kind == '{' {
			if i := d.find(all, "unload_dependents"); i != nothing {
				if dependents, err := d.bool(i); err == nil && dependents {
					return f.server.UnloadDependents(name)
				}
			}
		}
	}
	return f.server.Unload(name)
}

// readDocument reads a JSON body. An empty body counts as an empty object.
func readDocument(b *reader) (*document, error) {
	d := &document{nodes: []node{{kind: '{', next: 1}}}
	body, err := b.read(nil)
	if err == nil && len(body) > 0 {
		err = d.parse(body)
	}
	return d, err
}

func (f *Frontend) index(b *reader) {
	d, err := readDocument(b)
	var ready bool
	if err == nil {
		if i := d.find(0, "ready"); i != nothing {
			ready, err = d.bool(i)
		}
	}
	if err != nil {
		fail(b.ctx, err)
		return
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
		return o, fault.Errorf(fault.Internal, "attempt to get members for non-object")
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
				return o, fault.Errorf(fault.InvalidArgument, "cannot decode parameter '%s': %v", key, err)
			}
			o.Files[path] = data[:n]
		case key == "config":
			o.Config = string(value)
		default:
			return o, fault.Errorf(fault.Internal, "unexpected error on creating Triton parameter")
		}
	}
	return o, nil
}
