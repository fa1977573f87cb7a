"""The grammars of programming languages, and which of their nodes are definitions worth a heading.

Each query names them by captures: ``type`` (a class, a struct, a namespace), ``function``, ``body`` where the node does
not say itself where its body begins, ``name`` where the name stands behind the body, ``whole`` around the definition
``inner`` (decorators, export), and ``above`` for what belongs to the definition on the next line.
The grammars are the official ones of the tree-sitter project, one small wheel per language.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass

from tree_sitter import Language, Query


@dataclass(frozen=True, slots=True)
class Grammar:
    language: Language
    query: Query
    header_lines: bool  # a definition's first line is its header


_PYTHON = """
(class_definition) @type
(function_definition) @function
(decorated_definition definition: (_) @inner) @whole
(comment) @above
"""
_JAVASCRIPT = """
(class_declaration) @type
(function_declaration) @function
(generator_function_declaration) @function
(method_definition) @function
(lexical_declaration (variable_declarator value: [
    (arrow_function body: (statement_block) @body) (function_expression body: (_) @body)
])) @function
(lexical_declaration (variable_declarator value: (class body: (_) @body))) @type
(variable_declaration (variable_declarator value: [
    (arrow_function body: (statement_block) @body) (function_expression body: (_) @body)
])) @function
(variable_declaration (variable_declarator value: (class body: (_) @body))) @type
(expression_statement (assignment_expression right: [
    (arrow_function body: (statement_block) @body) (function_expression body: (_) @body)
])) @function
(expression_statement (assignment_expression right: (class body: (_) @body))) @type
(export_statement (_) @inner) @whole
[(comment) (decorator)] @above
"""
_JAVASCRIPT_FIELD = "(field_definition value: (arrow_function body: (statement_block) @body)) @function"
_TYPESCRIPT = """
(abstract_class_declaration) @type
(interface_declaration) @type
(enum_declaration) @type
(internal_module) @type
(module body: (_)) @type
(type_alias_declaration value: (object_type) @body) @type
(function_signature) @function
(public_field_definition value: (arrow_function body: (statement_block) @body)) @function
(ambient_declaration (_) @inner) @whole
(expression_statement (internal_module) @inner) @whole
"""
_JAVA = """
[(class_declaration) (interface_declaration) (enum_declaration) (record_declaration)
 (annotation_type_declaration)] @type
[(method_declaration) (constructor_declaration) (compact_constructor_declaration)] @function
[(line_comment) (block_comment)] @above
"""
_C = """
(function_definition) @function
(struct_specifier body: (_)) @type
(union_specifier body: (_)) @type
(enum_specifier body: (_)) @type
(type_definition type: (struct_specifier body: (_)) @inner declarator: (_) @name) @whole
(type_definition type: (union_specifier body: (_)) @inner declarator: (_) @name) @whole
(type_definition type: (enum_specifier body: (_)) @inner declarator: (_) @name) @whole
(comment) @above
"""
_CPP = """
(class_specifier body: (_)) @type
(namespace_definition) @type
(template_declaration (_) @inner) @whole
"""
_C_SHARP = """
[(class_declaration) (struct_declaration) (interface_declaration) (enum_declaration) (record_declaration)
 (namespace_declaration)] @type
[(method_declaration) (constructor_declaration) (destructor_declaration) (operator_declaration)] @function
(comment) @above
"""
_GO = """
(type_declaration (type_spec type: [(struct_type) (interface_type)])) @type
[(function_declaration) (method_declaration)] @function
(comment) @above
"""
_RUST = """
[(struct_item) (enum_item) (union_item) (trait_item) (impl_item)] @type
(mod_item body: (_)) @type
[(function_item) (macro_definition)] @function
[(line_comment) (block_comment) (attribute_item)] @above
"""
_RUBY = """
[(module) (class) (singleton_class)] @type
[(method) (singleton_method)] @function
(comment) @above
"""
_PHP = """
[(class_declaration) (interface_declaration) (trait_declaration) (enum_declaration)] @type
(namespace_definition body: (_)) @type
[(function_definition) (method_declaration)] @function
(comment) @above
"""
_BASH = """
(function_definition) @function
(comment) @above
"""

# Package, its function that gives the language, and the query.
_GRAMMARS: dict[str, tuple[str, str, str]] = {
    "python": ("tree_sitter_python", "language", _PYTHON),
    "javascript": ("tree_sitter_javascript", "language", _JAVASCRIPT + _JAVASCRIPT_FIELD),
    "typescript": ("tree_sitter_typescript", "language_typescript", _JAVASCRIPT + _TYPESCRIPT),
    "tsx": ("tree_sitter_typescript", "language_tsx", _JAVASCRIPT + _TYPESCRIPT),
    "java": ("tree_sitter_java", "language", _JAVA),
    "c": ("tree_sitter_c", "language", _C),
    "cpp": ("tree_sitter_cpp", "language", _C + _CPP),
    "c_sharp": ("tree_sitter_c_sharp", "language", _C_SHARP),
    "go": ("tree_sitter_go", "language", _GO),
    "rust": ("tree_sitter_rust", "language", _RUST),
    "ruby": ("tree_sitter_ruby", "language", _RUBY),
    "php": ("tree_sitter_php", "language_php", _PHP),
    "bash": ("tree_sitter_bash", "language", _BASH),
}
# Languages whose definitions say the essential on one line, and whose bodies may begin with comments.
_HEADER_LINES = frozenset({"ruby", "go"})


@functools.cache
def grammar(name: str) -> Grammar:
    """A grammar by its name in the table, loaded on first use."""
    package, function, query = _GRAMMARS[name]
    language = Language(getattr(importlib.import_module(package), function)())
    return Grammar(language, Query(language, query), header_lines=name in _HEADER_LINES)
