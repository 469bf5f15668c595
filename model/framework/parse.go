package framework

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tuner/model/onnx"
)

// ParseInputs reads the inputs in the form of ONNX Runtime OLive's flags. names are separated by
// commas. shapes are JSON lists, with -1 for any size ([[-1,256],[-1,256]]); a single input may
// have [-1,256]. types are PyTorch's or ONNX's names, separated by commas; the default is float32.
func ParseInputs(names, shapes, types string) ([]Input, error) {
	in, err := parseInputs(names, shapes, types)
	if err != nil {
		return nil, fmt.Errorf("cannot read the inputs: %w", err)
	}
	return in, nil
}

func parseInputs(names, shapes, types string) ([]Input, error) {
	nameList, typeList := split(names), split(types)
	shapeList, err := parseShapes(shapes)
	switch {
	case err != nil:
		return nil, err
	case len(nameList) == 0:
		return nil, errors.New("their names are missing, such as input_ids,attention_mask")
	case len(shapeList) != len(nameList):
		return nil, fmt.Errorf("there are %d names and %d shapes", len(nameList), len(shapeList))
	case len(typeList) > 0 && len(typeList) != len(nameList):
		return nil, fmt.Errorf("there are %d names and %d types", len(nameList), len(typeList))
	}
	list := make([]Input, len(nameList))
	for i, name := range nameList {
		list[i] = Input{Name: name, Type: onnx.Float, Shape: shapeList[i]}
		if len(typeList) > 0 {
			if list[i].Type, err = parseType(typeList[i]); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// split splits a list at its commas. An empty text is an empty list.
func split(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func parseShapes(text string) ([][]int64, error) {
	var list [][]int64
	var one []int64
	switch {
	case strings.TrimSpace(text) == "":
		return nil, nil
	case json.Unmarshal([]byte(text), &list) == nil:
		return list, nil
	case json.Unmarshal([]byte(text), &one) == nil:
		return [][]int64{one}, nil
	default:
		return nil, fmt.Errorf("the shapes %q are not JSON lists of whole numbers, such as [[-1,256],[-1,256]]", text)
	}
}

// parseType reads the name of a type.
func parseType(name string) (onnx.DataType, error) {
	plain := strings.ToLower(strings.TrimPrefix(name, "torch."))
	for t, numpy := range types {
		if plain == numpy || plain == strings.ToLower(t.String()) {
			return t, nil
		}
	}
	allowed := slices.Sorted(maps.Values(types))
	return 0, fmt.Errorf("the type %q is unknown; allowed are %s", name, strings.Join(allowed, ", "))
}
