/* lower_names.c: constants of a rank program: what every parameter, tensor and
 * block is called, and where it lies.
 *
 * Reads: tensors, parameters, blocks, frames, inside. Writes: constants of the
 * program. Guarantees: names are identifiers of C, each used once, made of the
 * user's own where there is one. */
#include "lower.h"

#include <string.h>

/* ---- names ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
}

char *identifier(Program *p, const char *name)
{
    char *made = text_format(p->arena, "%s%s",
                             name[0] >= '0' && name[0] <= '9' ? "_" : "", name);
    for (char *c = made; *c; c++)
        if (!is_letter(*c))
            *c = '_';
    return made;
}

static const char *const reserved[] = {
    "auto",     "break",    "case",     "char",
    "const",    "continue", "default",  "do",
    "double",   "else",     "enum",     "extern",
    "float",    "for",      "goto",     "if",
    "inline",   "int",      "long",     "register",
    "restrict", "return",   "short",    "signed",
    "sizeof",   "static",   "struct",   "switch",
    "typedef",  "union",    "unsigned", "void",
    "volatile", "while",    "main",     "m",
    "k",        "w",        "d",        "h",
    "micro",    "keep",     "hold",     "dhold",
    "input",    "weight",   "x",        "y",
    "dx",       "dy",       "t",        "job",
    "warmup",   "steady",   "cooldown", "initialise",
    "reduce",   "update",   "save",     "losses",
    "tmp",      "NULL",     "argc",     "argv",
    "errno",    "stdin",    "stdout",   "stderr",
    "remember", "undo",     "old",      "n",
    "seq",      "parts",    "queues",   "microbatches",
};

static size_t hash(const char *text)
{
    size_t h = 1469598103934665603u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* Enters the name into the set; false when it is there already. */
bool enter(Lowerer *lowerer, const char *name)
{
    size_t at = hash(name) & (lowerer->taken_size - 1);
    for (; lowerer->taken[at]; at = (at + 1) & (lowerer->taken_size - 1))
        if (strcmp(lowerer->taken[at], name) == 0)
            return false;
    lowerer->taken[at] = name;
    return true;
}

static const char *unique(Lowerer *lowerer, const char *name)
{
    const char *made = identifier(lowerer->p, name);
    for (int i = 2; !enter(lowerer, made); i++)
        made = text_format(lowerer->p->arena, "%s_%d",
                           identifier(lowerer->p, name), i);
    return made;
}

static const char *constant_named(Lowerer *lowerer, const char *name,
                                  size_t value, const char *comment)
{
    RankProgram *out = lowerer->out;
    const char *made = unique(lowerer, name);
    out->constants = array_grow(lowerer->p->arena, out->constants,
                                out->constant_count, sizeof *out->constants);
    out->constants[out->constant_count++] = (Constant){made, comment, value};
    return made;
}

static void section(Lowerer *lowerer, const char *title)
{
    RankProgram *out = lowerer->out;
    out->constants = array_grow(lowerer->p->arena, out->constants,
                                out->constant_count, sizeof *out->constants);
    out->constants[out->constant_count++] = (Constant){NULL, title, 0};
}

void enter_reserved(Lowerer *lowerer)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        enter(lowerer, reserved[i]);
}

/* ---- constants ---- */

static const char *shape_text(Program *p, long rows, long columns)
{
    return columns ? text_format(p->arena, "[%ld x %ld]", rows, columns)
                   : text_format(p->arena, "[%ld]", rows);
}

static const char *tensor_shape(Program *p, int tensor)
{
    const Tensor *t = &p->tensors[tensor];
    return shape_text(p, (long)p->set.rows.value * t->seq, t->width);
}

static const char *lasting_prefix(BlockKind kind)
{
    return kind == BLOCK_GRADIENT ? "g_"
           : kind == BLOCK_MASTER ? "master_"
                                  : "";
}

static const char *lasting_title(BlockKind kind)
{
    return kind == BLOCK_PARAMETER  ? "parameters"
           : kind == BLOCK_GRADIENT ? "their gradients, one for each use"
                                    : "what the optimizer changes of each";
}

static void name_lasting_block(Lowerer *lowerer, const Block *b)
{
    Program *p = lowerer->p;
    const Parameter *q = &p->parameters[b->chunk];
    const char *name = constant_named(
        lowerer,
        text_format(p->arena, "%s%s", lasting_prefix(b->kind), q->name),
        b->offset, shape_text(p, q->rows, q->columns));
    if (b->kind == BLOCK_PARAMETER)
        lowerer->parameter[b->chunk] = name;
    else if (b->kind == BLOCK_GRADIENT)
        lowerer->gradient[b->chunk] = name;
    else
        lowerer->master[b->chunk] = name;
}

/* Mean and variance have names by ranges alone: nothing else takes them. */
void name_lasting(Lowerer *lowerer)
{
    Program *p = lowerer->p;
    const char *title = NULL;
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++) {
        const Block *b = &p->blocks[i];
        if (b->rank != lowerer->rank || b->kind > BLOCK_VARIANCE)
            continue;
        lowerer->place[b->kind][b->chunk] = b;
        if (b->kind == BLOCK_MEAN || b->kind == BLOCK_VARIANCE)
            continue;
        const char *own = lasting_title(b->kind);
        if (own != title)
            section(lowerer, own);
        title = own;
        name_lasting_block(lowerer, b);
    }
}

const char *lasting_name(const Lowerer *lowerer, const Block *b)
{
    return b->kind == BLOCK_PARAMETER  ? lowerer->parameter[b->chunk]
           : b->kind == BLOCK_GRADIENT ? lowerer->gradient[b->chunk]
           : b->kind == BLOCK_MASTER
               ? lowerer->master[b->chunk]
               : lowerer->moment[b->kind - BLOCK_MEAN][b->chunk];
}

/* ---- ranges: what one call of a step takes together ---- */

static bool follows(const Block *before, const Block *b)
{
    return !b || before->offset + before->floats == b->offset;
}

/* Does one call update both: everything of b stands right behind that of a, and
 * decays alike. */
static bool updated_together(const Lowerer *lowerer, int a, int b)
{
    const Program *p = lowerer->p;
    static const BlockKind kinds[] = {BLOCK_GRADIENT, BLOCK_MEAN,
                                      BLOCK_VARIANCE};
    BlockKind values = lowerer->master[a] ? BLOCK_MASTER : BLOCK_PARAMETER;
    bool together = follows(lowerer->place[values][a],
                            lowerer->place[values][b]);
    for (int i = 0; i < 3; i++)
        together &= follows(lowerer->place[kinds[i]][a],
                            lowerer->place[kinds[i]][b]);
    return together && (p->set.decay == 0 ||
                        p->parameters[a].decay == p->parameters[b].decay);
}

static void add_to_ranges(Lowerer *lowerer, int parameter)
{
    Program *p = lowerer->p;
    Range *last = lowerer->range_count
                      ? &lowerer->ranges[lowerer->range_count - 1]
                      : NULL;
    if (!last || !updated_together(lowerer, last->last, parameter)) {
        lowerer->ranges = array_grow(p->arena, lowerer->ranges,
                                     lowerer->range_count,
                                     sizeof *lowerer->ranges);
        last = &lowerer->ranges[lowerer->range_count++];
        *last = (Range){.first = parameter};
    }
    last->last = parameter;
    last->floats = lowerer->place[BLOCK_GRADIENT][parameter]->offset -
                   lowerer->place[BLOCK_GRADIENT][last->first]->offset +
                   parameter_values(&p->parameters[parameter]);
}

static const char *moment_word(const Program *p, BlockKind kind)
{
    return kind == BLOCK_VARIANCE                ? "variance"
           : p->set.optimizer == OPTIMIZER_ADAMW ? "mean"
                                                 : "velocity";
}

static void name_range(Lowerer *lowerer, Range *range)
{
    Program *p = lowerer->p;
    const Parameter *first = &p->parameters[range->first];
    const char *which = lowerer->range_count == 1 ? "updated"
                        : first->decay            ? "decayed"
                                                  : "undecayed";
    section(lowerer, text_format(p->arena, "what one call updates: %s to %s",
                                 first->name, p->parameters[range->last].name));
    range->name = constant_named(lowerer,
                                 text_format(p->arena, "%s_floats", which),
                                 range->floats, "of each of its operands");
    for (int k = 0; k < 2; k++) {
        BlockKind kind = (BlockKind)(BLOCK_MEAN + k);
        const Block *b = lowerer->place[kind][range->first];
        if (b)
            lowerer->moment[k][range->first] = constant_named(
                lowerer,
                text_format(p->arena, "%s_%s", which, moment_word(p, kind)),
                b->offset, text_format(p->arena, "[%zu]", range->floats));
    }
}

static void name_gradients(Lowerer *lowerer)
{
    const Program *p = lowerer->p;
    size_t first = 0, end = 0;
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++) {
        const Block *b = &p->blocks[i];
        if (b->rank != lowerer->rank || b->kind != BLOCK_GRADIENT)
            continue;
        if (!lowerer->first_gradient) {
            first = b->offset;
            lowerer->first_gradient = lowerer->gradient[b->chunk];
        }
        end = b->offset + b->floats;
    }
    if (!lowerer->first_gradient)
        return;
    section(lowerer, "what one call clears");
    lowerer->gradient_floats = end - first;
    lowerer->gradients = constant_named(lowerer, "gradient_floats", end - first,
                                        "of all gradients");
}

void name_ranges(Lowerer *lowerer)
{
    const Program *p = lowerer->p;
    name_gradients(lowerer);
    for (int i = 0; i < p->block_count && p->blocks[i].kind < BLOCK_KEEP; i++)
        if (p->blocks[i].rank == lowerer->rank &&
            p->blocks[i].kind == BLOCK_PARAMETER)
            add_to_ranges(lowerer, p->blocks[i].chunk);
    for (int i = 0; i < lowerer->range_count; i++)
        name_range(lowerer, &lowerer->ranges[i]);
}

/* ---- more constants ---- */

static void name_whole(Lowerer *lowerer, const char *name, const Block *b)
{
    RankProgram *out = lowerer->out;
    if (!b || !b->floats)
        return;
    out->constants = array_grow(lowerer->p->arena, out->constants,
                                out->constant_count, sizeof *out->constants);
    out->constants[out->constant_count++] = (Constant){
        name, text_format(lowerer->p->arena, "[%zu]", b->floats), b->offset};
}

/* losses, tmp and old: names that nothing else may have. */
void name_fixed(Lowerer *lowerer)
{
    const Block *tmp = lasting(lowerer, BLOCK_TMP, -1),
                *losses = lasting(lowerer, BLOCK_LOSSES, -1),
                *old = lasting(lowerer, BLOCK_UNDO, -1);
    if (losses || (tmp && tmp->floats))
        section(lowerer, "losses of the micro-batches; scratch inside kernels");
    name_whole(lowerer, "losses", losses);
    name_whole(lowerer, "tmp", tmp);
    if (old)
        section(lowerer,
                "parameters, and what the optimizer keeps of them, before "
                "the last update");
    name_whole(lowerer, "old", old);
}

static void name_tensor(Lowerer *lowerer, int tensor, size_t scratch)
{
    Program *p = lowerer->p;
    bool dies = p->within[tensor] == BLOCK_SCRATCH;
    lowerer->tensor[tensor] = constant_named(
        lowerer, p->tensors[tensor].name,
        p->inside[tensor] + (dies ? scratch : 0), tensor_shape(p, tensor));
}

/* The chunk's tensors that lie in one kind of block, or in the scratch. */
static void name_within(Lowerer *lowerer, const Chunk *chunk, BlockKind kind,
                        size_t scratch)
{
    Program *p = lowerer->p;
    for (int i = chunk->first_op; i < chunk->first_op + chunk->op_count; i++) {
        int own[2] = {p->ops[i].output, p->ops[i].stats};
        for (int k = 0; k < 2; k++)
            if (own[k] >= 0 && p->within[own[k]] == kind)
                name_tensor(lowerer, own[k], scratch);
    }
    for (int i = chunk->first_gradient;
         i < chunk->first_gradient + chunk->gradient_count; i++) {
        int dx = p->gradients[i].dx;
        if (dx >= 0 && p->within[dx] == kind)
            name_tensor(lowerer, dx, scratch);
    }
}

void name_chunk(Lowerer *lowerer, int c, size_t scratch)
{
    static const struct {
        BlockKind kind;
        const char *title;
    } places[] = {
        {BLOCK_KEEP, "kept from forward to backward, inside its keep block"},
        {BLOCK_HOLD, "of the forward, for the weights' gradients: "
                     "inside its hold block"},
        {BLOCK_DHOLD, "gradients, for the weights' gradients: inside "
                      "its dhold block"},
        {BLOCK_SCRATCH, "scratch, dead when its action ends"},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        section(lowerer, text_format(lowerer->p->arena, "chunk %d: %s", c,
                                     places[i].title));
        name_within(lowerer, &lowerer->p->chunks[c], places[i].kind, scratch);
    }
}

const char *block_name(Lowerer *lowerer, int block)
{
    const Block *b = &lowerer->p->blocks[block];
    return text_format(lowerer->p->arena, "%s%d_%d",
                       block_words[b->kind - BLOCK_KEEP], b->chunk, b->slot);
}

static const char *block_shape(Program *p, const Block *b)
{
    const Chunk *chunk = &p->chunks[b->chunk];
    switch (b->kind) {
    case BLOCK_X: return tensor_shape(p, chunk->x);
    case BLOCK_Y: return tensor_shape(p, chunk->y);
    case BLOCK_DX: return tensor_shape(p, chunk->dx);
    case BLOCK_DY: return tensor_shape(p, chunk->dy);
    case BLOCK_TARGETS: return tensor_shape(p, chunk->targets);
    default: return text_format(p->arena, "[%zu]", b->floats);
    }
}

/* Constants of the blocks: index + 1 by kind, chunk and slot. */
static int *slot_constant(const Lowerer *lowerer, const Block *b)
{
    const Program *p = lowerer->p;
    size_t kind = (size_t)(b->kind - BLOCK_KEEP);
    return &lowerer->slots[(kind * (size_t)p->chunk_count + (size_t)b->chunk) *
                               (size_t)p->microbatches +
                           (size_t)b->slot];
}

/* The comment of a place lists the micro-batches that pass through it. */
static void add_micro(Program *p, Constant *place, int micro)
{
    size_t length = strlen(place->comment);
    if (length < 60)
        place->comment = text_format(p->arena, "%s %d", place->comment, micro);
    else if (place->comment[length - 1] != '.')
        place->comment = text_format(p->arena, "%s ...", place->comment);
}

void name_blocks(Lowerer *lowerer)
{
    Program *p = lowerer->p;
    section(lowerer, "blocks of one micro-batch; the last figures are the "
                     "micro-batches that use the place");
    for (int i = 0; i < p->block_count; i++) {
        const Block *b = &p->blocks[i];
        if (b->rank != lowerer->rank || b->kind < BLOCK_KEEP)
            continue;
        int *constant = slot_constant(lowerer, b);
        if (*constant) {
            add_micro(p, &lowerer->out->constants[*constant - 1], b->micro);
            continue;
        }
        constant_named(
            lowerer, block_name(lowerer, i), b->offset,
            text_format(p->arena, "%s: %d", block_shape(p, b), b->micro));
        *constant = lowerer->out->constant_count;
    }
}

/* Numbers of the model and the step that the calls take by their names. */
void name_sizes(Lowerer *lowerer)
{
    Program *p = lowerer->p;
    long rows = (long)p->set.rows.value, seq = p->tensors[p->input].seq;
    Constant sizes[] = {
        {"microbatches", "of one step", (size_t)p->microbatches},
        {"n",
         text_format(p->arena, "positions of one of them: %ld x %ld", rows,
                     seq),
         (size_t)(rows * seq)},
        {"seq", "positions of one row", (size_t)seq},
    };
    lowerer->out->size_count = p->emulate ? 1 : 3;
    lowerer->out->sizes = arena_take(p->arena, sizeof sizes);
    memcpy(lowerer->out->sizes, sizes, sizeof sizes);
}

/* An emulated program has two buffers, for all messages. */
void name_emulated(Lowerer *lowerer, bool sends, bool receives)
{
    const char *shape = text_format(lowerer->p->arena, "[%d]", EMULATED_FLOATS);
    section(lowerer, "messages, all of one length");
    if (sends)
        constant_named(lowerer, "sent", 0, shape);
    if (receives)
        constant_named(lowerer, "taken", EMULATED_FLOATS, shape);
}
