// Package mutation damages model files at random, and always in the same way for the same numbers. It
// stands between the sample models and the programs that try damaged ones. It does not decide what
// a damaged model must do.
package mutation

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tuner/model/onnx/onnxpb"
)

// Mutation is a damaged model.
type Mutation struct {
	Data []byte
	What string // what was changed, for people
}

// Of makes the mutation of a number, which is always the same. Half of them change the message
// (fields, lists, numbers, texts), so that the file stays valid; half change bytes.
func Of(model []byte, seed uint64, number int) Mutation {
	random := rand.New(rand.NewPCG(seed, uint64(number)))
	if number%2 == 0 {
		if m, ok := mutateMessage(random, model); ok {
			return m
		}
	}
	return mutateBytes(random, model)
}

// mutateBytes changes bytes in one to four places.
func mutateBytes(random *rand.Rand, model []byte) Mutation {
	m := Mutation{Data: slices.Clone(model)}
	for range 1 + random.IntN(4) {
		if len(m.Data) == 0 {
			break
		}
		at := place(random, len(m.Data))
		end := min(len(m.Data), at+1+random.IntN(1<<random.IntN(12)))
		var what string
		switch random.IntN(7) {
		case 0:
			m.Data[at] ^= 1 << random.IntN(8)
			what = "bit flipped at %d"
		case 1:
			m.Data[at] = byte(random.IntN(256))
			what = "byte replaced at %d"
		case 2:
			m.Data = slices.Delete(m.Data, at, end)
			what = "bytes deleted at %d"
		case 3:
			m.Data = slices.Insert(m.Data, at, m.Data[place(random, len(m.Data)):][:1]...)
			what = "byte inserted at %d"
		case 4:
			m.Data = m.Data[:at]
			what = "cut at %d"
		case 5:
			clear(m.Data[at:end])
			what = "bytes zeroed at %d"
		default:
			huge := binary.AppendUvarint(nil, extreme(random))
			copy(m.Data[at:], huge)
			what = "large number at %d"
		}
		m.What += fmt.Sprintf(what+"; ", at)
	}
	return m
}

// place returns an offset. Half of them are near the ends of the file, which usually have the graph
// and no weights.
func place(random *rand.Rand, size int) int {
	switch random.IntN(4) {
	case 0:
		return random.IntN(min(size, 4096))
	case 1:
		return size - 1 - random.IntN(min(size, 4096))
	default:
		return random.IntN(size)
	}
}

// extreme returns a number that is unusual for sizes and counts.
func extreme(random *rand.Rand) uint64 {
	numbers := []uint64{0, 1, 1 << 16, 1 << 31, 1<<31 - 1, 1 << 32, 1 << 40, 1 << 62, math.MaxInt64, 1 << 63, math.MaxUint64, math.MaxUint64 - 1}
	return numbers[random.IntN(len(numbers))]
}

// mutateMessage changes one to three fields of a model's message.
func mutateMessage(random *rand.Rand, model []byte) (Mutation, bool) {
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(model, p); err != nil {
		return Mutation{}, false
	}
	var m Mutation
	for range 1 + random.IntN(3) {
		m.What += mutateField(random, p.ProtoReflect()) + "; "
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	m.Data = data
	return m, err == nil
}

// mutateField descends into the message at random, and changes a field there.
func mutateField(random *rand.Rand, m protoreflect.Message) string {
	for {
		var set []protoreflect.FieldDescriptor
		m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool { set = append(set, f); return true })
		if len(set) == 0 {
			return "nothing in " + string(m.Descriptor().Name())
		}
		slices.SortFunc(set, func(a, b protoreflect.FieldDescriptor) int { return int(a.Number() - b.Number()) })
		f := set[random.IntN(len(set))]
		name := string(m.Descriptor().Name()) + "." + string(f.Name())
		goDown := f.Message() != nil && random.IntN(8) != 0
		switch {
		case f.IsList() && goDown:
			list := m.Mutable(f).List()
			m = list.Get(random.IntN(list.Len())).Message()
		case f.IsList():
			return name + " " + mutateList(random, m, f)
		case goDown:
			m = m.Mutable(f).Message()
		case f.Message() != nil || random.IntN(4) == 0:
			m.Clear(f)
			return name + " cleared"
		default:
			m.Set(f, changed(random, f, m.Get(f)))
			return name + " changed"
		}
	}
}

// mutateList changes an element, or the order and number of elements.
func mutateList(random *rand.Rand, m protoreflect.Message, f protoreflect.FieldDescriptor) string {
	list := m.Mutable(f).List()
	i, k := random.IntN(list.Len()), random.IntN(list.Len())
	switch random.IntN(4) {
	case 0:
		list.Append(list.Get(i))
		return fmt.Sprintf("%d again", i)
	case 1:
		list.Truncate(i)
		return fmt.Sprintf("cut at %d", i)
	case 2:
		a, b := list.Get(i), list.Get(k)
		list.Set(i, b)
		list.Set(k, a)
		return fmt.Sprintf("%d and %d exchanged", i, k)
	}
	if f.Message() != nil {
		list.Set(i, list.Get(k))
	} else {
		list.Set(i, changed(random, f, list.Get(i)))
	}
	return fmt.Sprintf("%d changed", i)
}

// changed returns another value of a field that is not a message.
func changed(random *rand.Rand, f protoreflect.FieldDescriptor, v protoreflect.Value) protoreflect.Value {
	number := extreme(random)
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!v.Bool())
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(random.IntN(32)))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(random.IntN(64)))
	case protoreflect.Int64Kind:
		if random.IntN(2) == 0 {
			number = uint64(v.Int() + int64(random.IntN(5)) - 2)
		}
		return protoreflect.ValueOfInt64(int64(number))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(number)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(math.Float32frombits(uint32(random.Uint64())))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(math.Float64frombits(random.Uint64()))
	case protoreflect.StringKind:
		texts := []string{"", "x", v.String() + "_", "../../etc/passwd", "model.onnx", "\n\x1b[31m", "batch"}
		return protoreflect.ValueOfString(texts[random.IntN(len(texts))])
	case protoreflect.BytesKind:
		b := slices.Clone(v.Bytes())
		if len(b) > 0 {
			b = b[:random.IntN(len(b))]
		}
		return protoreflect.ValueOfBytes(b)
	default:
		return v
	}
}
