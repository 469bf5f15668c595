package rest

import (
	"context"
	"encoding/base64"
	"strings"

	"tuner/engine"
	"tuner/engine/fault"
	"tuner/engine/rest/document"
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
		err = b.reserve(d.Len()) // for the decoded files
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
	d := &document.JSON{}
	if len(body) > 0 && d.Parse(body) == nil {
		if all := d.Find(0, "parameters"); all != document.None && d.Kind(all) == '{' {
			if i := d.Find(all, "unload_dependents"); i != document.None {
				if dependents, err := d.Bool(i); err == nil && dependents {
					return f.server.UnloadDependents(name)
				}
			}
		}
	}
	return f.server.Unload(name)
}

// readDocument reads a JSON body. An empty body counts as an empty object.
func readDocument(b *reader) (*document.JSON, error) {
	d := document.Empty()
	body, err := b.read(nil)
	if err == nil && len(body) > 0 {
		err = d.Parse(body)
	}
	return d, err
}

// requireDocument reads a body that must be JSON.
func requireDocument(b *reader) (*document.JSON, error) {
	d := document.Empty()
	body, err := b.read(nil)
	if err == nil {
		err = d.Parse(body)
	}
	return d, err
}

func (f *Frontend) index(b *reader) {
	d, err := readDocument(b)
	var ready bool
	if err == nil {
		if i := d.Find(0, "ready"); i != document.None {
			ready, err = d.Bool(i)
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
func override(d *document.JSON) (engine.Override, error) {
	o := engine.Override{Files: map[string][]byte{}}
	all := d.Find(0, "parameters")
	switch {
	case all == document.None:
		return o, nil
	case d.Kind(all) != '{':
		return o, fault.Errorf(fault.Internal, "attempt to get members for non-object")
	}
	for i := range d.Content(all) {
		value, err := d.Text(i)
		if err != nil {
			return o, err
		}
		key := string(d.Key(i))
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
