/* pipe.y: the grammar of the .pipe language. Rules only build the tree; `check`
 * judges it. */
%define api.pure full
%define api.location.type {Span}
%define parse.lac full
%define parse.error custom
%locations
%expect 0
%param {void *scanner}
%parse-param {Reader *reader}

%code requires {
#include "reader.h"
}

%code {
#include "pipe_lex.h"
#define YYLLOC_DEFAULT(current, right, count)                                       \
    do {                                                                            \
        if (count) {                                                                \
            (current).source = YYRHSLOC(right, 1).source;                           \
            (current).begin = YYRHSLOC(right, 1).begin;                             \
            (current).end = YYRHSLOC(right, count).end;                             \
        } else {                                                                    \
            (current) = YYRHSLOC(right, 0);                                         \
            (current).begin = (current).end;                                        \
        }                                                                           \
    } while (0)
enum { NO_TEXT = 0 };
int yylex(YYSTYPE *value, Span *at, void *scanner);
static void yyerror(const Span *at, void *scanner, Reader *reader, const char *message);
static Tree *make(Reader *reader, TreeKind kind, Span at, const char *text, Span name);
static Tree *binary(Reader *reader, Span at, const char *operator, Tree *left, Tree *right);
static Tree *both(Reader *reader, TreeKind kind, Span at, const char *operator, Tree *left, Tree *right);
static Tree *add_row(Tree *rows, const Tree *row);
}

%union {
    const char *text;
    NumberToken number;
    Tree *tree;
}

%token START_FILE START_DEFINE NEWLINE "end of line"
%token LET "let" LAYER "layer" MODEL "model" INPUT "input" OF "of" TIED "tied"
%token <text> NAME "a name" WORD "a word" STRING "text in quotes" BLOCK "a block"
%token <number> NUMBER "a number"
%token SCHEDULE "schedule" FOR "for" IN "in" BY "by" DOWN "down" IF "if" ELSE "else" AND "and" OR "or" RANGE ".."
%token <text> COMPARE "a comparison"

%type <tree> items item parameters names layer_lines layer_line statement
%type <tree> model_lines model_line entry dimensions callee lines line values listed
%type <tree> expression arguments argument_list argument elements
%type <tree> rows row steps step stride condition choice
%type <text> word

%precedence LOW
%left OR
%left AND
%left '+' '-'
%left '*' '/' '%'
%precedence NEGATE
%precedence '('

%%

start
    : START_FILE items                      { reader->tree = $2; }
    | START_DEFINE NAME '=' values NEWLINE  { $4->text = $2; $4->name = @2; $4->at = @$; reader->tree = $4; }
    ;

end_of_line
    : NEWLINE                               { reader->depth = 0; yyerrok; }       // one line's error is no other's
    ;

items
    : %empty                                { $$ = make(reader, TREE_FILE, @$, NULL, @$); }
    | items item                            { $$ = $2 ? add_child($1, $2) : $1; }
    ;

item
    : NEWLINE                               { $$ = NULL; }
    | error NEWLINE                         { $$ = NULL; reader->depth = 0; }
    | LET error end_of_line                 { $$ = NULL; }
    | LET NAME '=' expression NEWLINE       { $$ = add_child(make(reader, TREE_LET, @$, $2, @2), $4); }
    | LAYER NAME parameters '{' layer_lines '}' {
        $5->text = $2; $5->name = @2; $5->at = @$;
        $3->next = $5->child; $5->child = $3;           // the parameters come first
        if (!$5->last) $5->last = $3;
        $$ = $5;
    }
    | MODEL NAME '{' model_lines '}'        { $$ = $4; $$->text = $2; $$->name = @2; $$->at = @$; }
    | BLOCK '{' lines '}'                   { $$ = $3; $$->text = $1; $$->name = @1; $$->at = @$; }
    | NAME '{' lines '}'                    { $$ = $3; $$->text = $1; $$->name = @1; $$->at = @$; }
    | BLOCK word '{' lines '}'              {
        $$ = $4; $$->text = $1; $$->name = @1; $$->at = @$;
        Tree *preset = make(reader, TREE_NAME, @2, $2, @2);
        preset->next = $$->child; $$->child = preset;   // it comes first
        if (!$$->last) $$->last = preset;
    }
    | SCHEDULE word '{' rows '}'            { $$ = add_child(make(reader, TREE_SCHEDULE, @$, $2, @2), $4); }
    ;

word
    : NAME
    | WORD
    ;

rows
    : row                                   { $$ = make(reader, TREE_STEPS, @$, NULL, @$); add_row($$, $1); }
    | rows end_of_line row                  { $$ = add_row($1, $3); }
    ;

row
    : %empty                                { $$ = NULL; }
    | error                                 { $$ = NULL; reader->depth = 0; }
    | steps
    ;

steps
    : step                                  { $$ = add_child(make(reader, TREE_STEPS, @$, NULL, @$), $1); }
    | steps step                            { $$ = add_child($1, $2); }
    ;

step
    : LET NAME '=' expression               { $$ = add_child(make(reader, TREE_LET, @$, $2, @2), $4); }
    | NAME                                  { $$ = make(reader, TREE_NAME, @$, $1, @1); }
    | NAME '(' arguments ')'                { $$ = $3; $$->text = $1; $$->name = @1; $$->at = @$; }
    | FOR NAME IN expression RANGE expression stride '{' rows '}' {
        $$ = add_child(add_child(make(reader, TREE_FOR, @$, $2, @2), $4), $6);
        add_child(add_child($$, $7), $9);
    }
    | FOR error '{' rows '}'                { $$ = $4; reader->depth = 0; }
    | choice
    ;

choice
    : IF condition '{' rows '}'             { $$ = add_child(add_child(make(reader, TREE_IF, @$, NULL, @1), $2), $4); }
    | IF condition '{' rows '}' ELSE '{' rows '}' {
        $$ = add_child(add_child(add_child(make(reader, TREE_IF, @$, NULL, @1), $2), $4), $8);
    }
    | IF condition '{' rows '}' ELSE choice {
        $$ = add_child(add_child(add_child(make(reader, TREE_IF, @$, NULL, @1), $2), $4), $7);
    }
    | IF error '{' rows '}'                 { $$ = $4; reader->depth = 0; }
    ;

stride
    : %empty                                { $$ = make(reader, TREE_BY, @$, NULL, @$); }
    | DOWN                                  { $$ = make(reader, TREE_BY, @$, "down", @$); }
    | BY expression                         { $$ = add_child(make(reader, TREE_BY, @$, NULL, @$), $2); }
    | BY expression DOWN                    { $$ = add_child(make(reader, TREE_BY, @$, "down", @$), $2); }
    ;

condition
    : expression COMPARE expression         { $$ = both(reader, TREE_COMPARE, @$, $2, $1, $3); if (!$$) YYABORT; }
    | condition AND condition               { $$ = both(reader, TREE_COMPARE, @$, "and", $1, $3); if (!$$) YYABORT; }
    | condition OR condition                { $$ = both(reader, TREE_COMPARE, @$, "or", $1, $3); if (!$$) YYABORT; }
    | '(' condition ')'                     { $$ = $2; }
    ;

parameters
    : %empty                                { $$ = make(reader, TREE_PARAMETERS, @$, NULL, @$); }
    | '(' names ')'                         { $$ = $2; }
    ;

names
    : NAME                                  { $$ = add_child(make(reader, TREE_PARAMETERS, @$, NULL, @$),
                                                             make(reader, TREE_NAME, @1, $1, @1)); }
    | names ',' NAME                        { $$ = add_child($1, make(reader, TREE_NAME, @3, $3, @3)); }
    ;

layer_lines
    : layer_line                            { $$ = make(reader, TREE_LAYER, @$, NULL, @$);
                                              if ($1) add_child($$, $1); }
    | layer_lines end_of_line layer_line        { $$ = $3 ? add_child($1, $3) : $1; }
    ;

layer_line
    : %empty                                { $$ = NULL; }
    | error                                 { $$ = NULL; reader->depth = 0; }
    | statement
    ;

statement
    : NAME '=' expression                   { $$ = add_child(make(reader, TREE_ASSIGN, @$, $1, @1), $3); }
    | expression                            { $$ = add_child(make(reader, TREE_RESULT, @$, NULL, @$), $1); }
    ;

model_lines
    : model_line                            { $$ = make(reader, TREE_MODEL, @$, NULL, @$);
                                              if ($1) add_child($$, $1); }
    | model_lines end_of_line model_line        { $$ = $3 ? add_child($1, $3) : $1; }
    ;

model_line
    : %empty                                { $$ = NULL; }
    | error                                 { $$ = NULL; reader->depth = 0; }
    | INPUT NAME dimensions                 { $$ = add_child(make(reader, TREE_INPUT, @$, $2, @2), $3); }
    | INPUT NAME dimensions OF expression   { $$ = add_child(add_child(make(reader, TREE_INPUT, @$, $2, @2), $3), $5); }
    | entry
    | entry TIED NAME                       { $$ = add_child($1, make(reader, TREE_TIED, @3, $3, @3)); $$->at = @$; }
    ;

entry
    : NAME ':' callee                       { $$ = add_child(make(reader, TREE_ENTRY, @$, $1, @1), $3); }
    | NAME ':' callee '*' expression        { $$ = add_child(add_child(make(reader, TREE_ENTRY, @$, $1, @1), $3), $5); }
    ;

dimensions
    : '[' expression ']'                    { $$ = add_child(make(reader, TREE_LIST, @$, NULL, @$), $2); }
    | dimensions '[' expression ']'         { $$ = add_child($1, $3); $$->at = @$; }
    ;

callee
    : NAME                                  { $$ = make(reader, TREE_CALL, @$, $1, @1); }
    | NAME '(' arguments ')'                { $$ = $3; $$->text = $1; $$->name = @1; $$->at = @$; }
    ;

lines
    : line                                  { $$ = make(reader, TREE_BLOCK, @$, NULL, @$);
                                              if ($1) add_child($$, $1); }
    | lines end_of_line line                    { $$ = $3 ? add_child($1, $3) : $1; }
    ;

line
    : %empty                                { $$ = NULL; }
    | error                                 { $$ = NULL; reader->depth = 0; }
    | NAME values                           { $$ = $2; $$->text = $1; $$->name = @1; $$->at = @$; }
    ;

values
    : %empty                                { $$ = make(reader, TREE_LINE, @$, NULL, @$); }
    | values expression %prec LOW           { $$ = add_child($1, $2); }
    | values listed                         { $$ = add_child($1, $2); }
    ;

listed
    : NAME ',' NAME                         {
        $$ = add_child(make(reader, TREE_LIST, @$, ",", @$), make(reader, TREE_NAME, @1, $1, @1));
        add_child($$, make(reader, TREE_NAME, @3, $3, @3));
    }
    | listed ',' NAME                       { $$ = add_child($1, make(reader, TREE_NAME, @3, $3, @3)); $$->at = @$; }
    ;

expression
    : expression '+' expression             { if (!($$ = binary(reader, @$, "+", $1, $3))) YYABORT; }
    | expression '-' expression             { if (!($$ = binary(reader, @$, "-", $1, $3))) YYABORT; }
    | expression '*' expression             { if (!($$ = binary(reader, @$, "*", $1, $3))) YYABORT; }
    | expression '/' expression             { if (!($$ = binary(reader, @$, "/", $1, $3))) YYABORT; }
    | expression '%' expression             { if (!($$ = binary(reader, @$, "%", $1, $3))) YYABORT; }
    | '-' expression %prec NEGATE           { $$ = add_child(make(reader, TREE_NEGATE, @$, NULL, @1), $2); }
    | '(' expression ')'                    { $$ = $2; }
    | '[' elements ']'                      { $$ = $2; $$->at = @$; }
    | NUMBER                                { $$ = make(reader, TREE_NUMBER, @$, NULL, @$);
                                              $$->number = $1.value; $$->unit = $1.unit; }
    | STRING                                { $$ = make(reader, TREE_STRING, @$, $1, @$); }
    | NAME %prec LOW                        { $$ = make(reader, TREE_NAME, @$, $1, @1); }
    | WORD %prec LOW                        { $$ = make(reader, TREE_NAME, @$, $1, @1); }
    | NAME '(' arguments ')'                { $$ = $3; $$->text = $1; $$->name = @1; $$->at = @$; }
    | WORD '(' arguments ')'                { $$ = $3; $$->text = $1; $$->name = @1; $$->at = @$; }
    | NAME ':' NAME '(' arguments ')'       {
        $5->text = $3; $5->name = @3; $5->at = @$;
        $$ = add_child(make(reader, TREE_LABEL, @$, $1, @1), $5);
    }
    ;

elements
    : %empty                                { $$ = make(reader, TREE_LIST, @$, NULL, @$); }
    | elements expression %prec LOW         { $$ = add_child($1, $2); }
    | elements ','
    ;

arguments
    : %empty                                { $$ = make(reader, TREE_CALL, @$, NULL, @$); }
    | argument_list
    ;

argument_list
    : argument                              { $$ = add_child(make(reader, TREE_CALL, @$, NULL, @$), $1); }
    | argument_list ',' argument            { $$ = add_child($1, $3); }
    ;

argument
    : expression
    | NAME '=' expression                   { $$ = add_child(make(reader, TREE_ARGUMENT, @$, $1, @1), $3); }
    ;

%%

static Tree *make(Reader *reader, TreeKind kind, Span at, const char *text, Span name)
{
    Tree *made = tree(reader->program, kind, at, name);
    made->text = text;
    return made;
}

/* `1 + 1 + 1 + ...` needs no stack of the parser, but leans to the left: its
 * depth is bounded here, so that whoever walks the tree may recurse. */
static Tree *both(Reader *reader, TreeKind kind, Span at, const char *operator, Tree *left, Tree *right)
{
    Tree *made = add_child(add_child(make(reader, kind, at, operator, at), left), right);
    if (made->number <= MAX_DEPTH)
        return made;
    error_at(reader->program, at, "an expression of more than %d levels", MAX_DEPTH);
    help(reader->program, "name parts of it");
    return NULL;
}

static Tree *binary(Reader *reader, Span at, const char *operator, Tree *left, Tree *right)
{
    return both(reader, TREE_BINARY, at, operator, left, right);
}

/* The steps of a line; a line without any is NULL. */
static Tree *add_row(Tree *rows, const Tree *row)
{
    for (Tree *step = row ? row->child : NULL, *next; step; step = next) {
        next = step->next;
        step->next = NULL;
        add_child(rows, step);
    }
    return rows;
}

/* Called by bison itself only when its stack is full. */
static void yyerror(const Span *at, void *scanner, Reader *reader, const char *message)
{
    (void)scanner;
    (void)message;
    error_at(reader->program, *at, "nested too deeply");
    help(reader->program, "use fewer brackets: name the inner results");
}

static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, Reader *reader)
{
    (void)scanner;
    yysymbol_kind_t kinds[YYNTOKENS];
    const char *names[YYNTOKENS];
    int count = yypcontext_expected_tokens(context, kinds, YYNTOKENS);
    for (int i = 0; i < count; i++)
        names[i] = yysymbol_name(kinds[i]);
    report_syntax(reader, *yypcontext_location(context), yysymbol_name(yypcontext_token(context)), names,
                  count < 0 ? 0 : count);
    return 0;
}
